"""The records of recalls, and what memories learn from rewards. Invariant: a retrieval is rewarded once."""

from typing import Any

from caisson.common.errors import Conflict, NotFound
from caisson.common.ids import new_id
from caisson.common.postgres import Pool, acquire, fetch_all, transaction
from caisson.memory.adapters.postgres.rows import gate
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.retrievals import Retrieval
from caisson.memory.domain.utility import learn


class PostgresRetrievals:
    """The domain's `Retrievals`."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def record(self, retrieval: Retrieval) -> None:
        """Keep a record, and with it the fact for the bus."""
        async with acquire(self._pool) as connection:
            await self._sql.record_recall(
                connection,
                retrieval=retrieval.retrieval_id,
                tenant=retrieval.principal.tenant,
                user=retrieval.principal.user,
                session=retrieval.session_id,
                kind=retrieval.kind,
                injected=list(retrieval.injected),
                event=new_id("evt"),
                data={"retrieval_id": retrieval.retrieval_id, "ids": list(retrieval.injected)},
            )

    async def reward(self, retrieval_id: str, reward: float, filter_: HardFilter) -> list[str]:
        """Let the memories of a retrieval learn what it was worth; raise NotFound or Conflict."""
        principal = filter_.principal
        whose = {"retrieval": retrieval_id, "tenant": principal.tenant, "user": principal.user}
        async with transaction(self._pool) as connection:
            await self._sql.lock_tenant(connection, tenant=principal.tenant)
            rewarded = await self._sql.reward_retrieval(connection, **whose, reward=reward)
            if rewarded is None:
                if await self._sql.has_retrieval(connection, **whose):
                    raise Conflict("this retrieval was rewarded before", field="retrieval_id")
                raise NotFound("no such retrieval")
            injected = rewarded["injected"]
            rows = await fetch_all(self._sql.utilities(connection, **gate(filter_), ids=injected))
            learned = {row["memory_id"]: learn(row["q"], reward=reward, shared_by=len(injected)) for row in rows}
            await self._sql.set_utilities(
                connection, tenant=principal.tenant, ids=list(learned), qs=list(learned.values())
            )
        return [memory_id for memory_id in injected if memory_id in learned]
