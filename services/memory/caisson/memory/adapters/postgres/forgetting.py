"""Deleting. Invariant: when the transaction commits, no table holds a text that was forgotten or made from it."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from caisson.common.errors import Denied, NotFound
from caisson.common.ids import TenantId, UserId
from caisson.common.postgres import Connection, Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.events import Fact, record
from caisson.memory.adapters.postgres.jobs import create_job, note_job
from caisson.memory.adapters.postgres.reading import NO_SUCH_MEMORY
from caisson.memory.adapters.postgres.rows import Row, gate
from caisson.memory.adapters.postgres.summaries import Summaries
from caisson.memory.adapters.postgres.tombstones import Tombstones
from caisson.memory.domain import receipts
from caisson.memory.domain.forgetting import Plan, plan
from caisson.memory.domain.jobs import Job, JobKind
from caisson.memory.domain.principals import HardFilter, Principal
from caisson.memory.domain.writing import Forgotten

_SESSION_PAGE = 200
_FACT_IDS = 500


class PostgresForgetting:
    """The domain's `Forgetting`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts, *, clock: Callable[[], datetime]) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts
        self._clock = clock

    async def forget(self, id_: str, filter_: HardFilter) -> tuple[str, Forgotten]:
        """Delete a memory and everything made from it, and keep the receipt; raise NotFound or Denied."""
        principal = filter_.principal
        async with self._accounts.writing(principal.tenant, principal.user) as (connection, _):
            row = await self._sql.read_memory(
                connection, **gate(filter_), own=principal.own_scope, id=id_, as_of=None
            )
            check_owner(row, principal)
            forgotten = await self._forget(connection, principal, [row["memory_id"]], row["owner_scope"])
            receipt = receipts.kept(forgotten)
            return await create_job(self._sql, connection, JobKind.DELETE, principal, receipt=receipt), forgotten

    async def forget_owned(self, principal: Principal, job: Job, limit: int) -> tuple[Job, Forgotten]:
        """Delete up to `limit` memories of the job's owner, and note it in the job; raise Conflict."""
        tenant, owner = principal.tenant, job.state["owner"]
        async with self._accounts.writing(tenant, principal.user) as (connection, _):
            rows = await fetch_all(self._sql.owned_page(connection, tenant=tenant, owner=owner, limit=limit))
            forgotten = await self._forget(connection, principal, [row["memory_id"] for row in rows], owner)
            noted = receipts.erased(job, forgotten)
            await note_job(self._sql, connection, noted)
        return noted, forgotten

    async def owns(self, tenant: TenantId, owner_scope: str) -> bool:
        """Whether anything of an owner is left."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.owned_page(connection, tenant=tenant, owner=owner_scope, limit=1))
        return bool(rows)

    async def forget_user(self, tenant: TenantId, user: UserId) -> None:
        """Drop what else names a user whose memories are gone."""
        async with self._accounts.writing(tenant, user) as (connection, _):
            await self._sql.forget_user(connection, tenant=tenant, user=user)

    async def end_session(self, tenant: TenantId, session_id: str) -> Forgotten:
        """Delete up to a page of the session layer of a session, in which nothing is remembered from now on.

        The same may be said elsewhere: no tombstones.
        """
        async with self._accounts.writing(tenant, UserId("")) as (connection, _):
            await self._sql.mark_session_ended(connection, tenant=tenant, session=session_id)
            await self._sql.forget_recalls_of_session(connection, tenant=tenant, session=session_id)
            rows = await fetch_all(
                self._sql.session_page(connection, tenant=tenant, session=session_id, limit=_SESSION_PAGE)
            )
            asked = [row["memory_id"] for row in rows]
            nobody = Principal(tenant=tenant, user=UserId(""), granted=frozenset())
            return await self._forget(connection, nobody, asked, "", bury=False)

    async def _forget(
        self,
        connection: Connection,
        principal: Principal,
        asked: list[str],
        owner: str,
        *,
        bury: bool = True,
    ) -> Forgotten:
        if not asked:
            return Forgotten(deleted=(), rebuilt=(), seen=frozenset(), chunks=0, epochs=0, tombstones=0)
        tenant = principal.tenant
        decided = await self._plan(connection, tenant, asked, owner)
        touched = [*decided.delete, *decided.rebuild]
        seen = await fetch_all(
            self._sql.shared_among(connection, tenant=tenant, allowed=sorted(principal.allowed), ids=touched)
        )
        scopes = await fetch_all(self._sql.scopes_of(connection, tenant=tenant, ids=touched))
        graves = Tombstones(self._sql, connection, tenant, now=self._now)
        tombstones = await graves.bury(touched) if bury else 0
        deleted = await self._delete(connection, tenant, decided.delete)
        summaries = Summaries(self._sql, connection, tenant, now=self._clock())
        repeated = await summaries.rebuild(decided.rebuild, wipe=True)
        deleted += await self._delete(connection, tenant, repeated)
        owners = sorted({row["owner_scope"] for row in deleted})
        await self._sql.wake_memories(
            connection, tenant=tenant, ids=sorted(decided.wake), owners=owners, now=self._clock()
        )
        ids = tuple(row["memory_id"] for row in deleted)
        rebuilt = tuple(summary for summary in decided.rebuild if summary not in repeated)
        await self._tell(connection, tenant, principal.user, deleted)
        return Forgotten(
            deleted=ids,
            rebuilt=rebuilt,
            seen=frozenset(row["memory_id"] for row in seen),
            chunks=sum(row["chunks"] for row in deleted),
            epochs=len(scopes),
            tombstones=tombstones,
        )

    async def _plan(self, connection: Connection, tenant: TenantId, asked: list[str], owner: str) -> Plan:
        rows = await fetch_all(self._sql.graph_around(connection, tenant=tenant, ids=asked, owners=[owner]))
        return plan(
            asked,
            edges=[(row["memory_id"], row["source_id"]) for row in rows],
            summaries={row["memory_id"] for row in rows if row["is_summary"]},
            material={row["source_id"] for row in rows if row["is_material"]},
        )

    async def _delete(self, connection: Connection, tenant: TenantId, memory_ids: Collection[str]) -> list[Row]:
        ids = sorted(memory_ids)
        if not ids:
            return []
        await self._sql.drop_candidates(connection, tenant=tenant, ids=ids)
        rows = await fetch_all(self._sql.delete_memories(connection, tenant=tenant, ids=ids))
        await self._sql.forget_successors(connection, tenant=tenant, ids=ids)
        await self._sql.forget_retrieved(connection, tenant=tenant, ids=ids)
        return rows

    async def _tell(self, connection: Connection, tenant: TenantId, user: UserId, deleted: list[Row]) -> None:
        """Tell what went: to whom asked for it or, where nobody did, to each of those who had remembered it."""
        for whose in [user] if user else dict.fromkeys(UserId(row["user_id"]) for row in deleted):
            ids = [row["memory_id"] for row in deleted if user or row["user_id"] == whose]
            pages = [ids[at : at + _FACT_IDS] for at in range(0, len(ids), _FACT_IDS)]
            facts = [Fact(type="memory.forgotten", data={"ids": page}) for page in pages]
            await record(self._sql, connection, tenant, whose, facts)

    @property
    def _now(self) -> datetime:
        return self._clock()


def check_owner(row: Row | None, principal: Principal) -> None:
    """Raise NotFound where nothing is to be seen, and Denied where a shared memory is another owner's."""
    if row is None:
        raise NotFound(NO_SUCH_MEMORY)
    if row["owner_scope"] not in principal.allowed:
        raise Denied("the memory is shared with the caller and belongs to another; only its owner may change it")
