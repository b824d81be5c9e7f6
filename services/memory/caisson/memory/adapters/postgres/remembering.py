"""Storing drafts. Invariant: everything here happens under the tenant's lock, so each decision is the last word."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, assert_never

from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.events import Fact, record
from caisson.memory.adapters.postgres.placing import Placing
from caisson.memory.domain.drafting import Draft
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.writing import Created, Duplicate, Refused, Superseded, Written


class PostgresRemembering:
    """The domain's `Remembering`."""

    def __init__(self, queries: Any, accounts: Accounts, *, clock: Callable[[], datetime]) -> None:
        self._sql = queries
        self._accounts = accounts
        self._clock = clock

    async def remember(self, drafts: Sequence[Draft], principal: Principal) -> list[Written]:
        """Store drafts, all or none; raise QuotaExceeded with limit and usage."""
        tenant, user = principal.tenant, principal.user
        async with self._accounts.writing(tenant, user) as (connection, before):
            written = [
                await Placing(self._sql, connection, principal, draft, now=self._clock()).place() for draft in drafts
            ]
            await self._accounts.close(connection, tenant, user, before)
            facts = [fact for draft, result in zip(drafts, written, strict=True) for fact in _facts(draft, result)]
            await record(self._sql, connection, tenant, user, facts)
        return written


def _facts(draft: Draft, written: Written) -> list[Fact]:
    session_id, run_id = draft.origin.session_id, draft.origin.run_id
    match written:
        case Created(memory_id=memory_id):
            data: dict[str, Any] = {"id": memory_id, "layer": draft.layer}
            return [Fact(type="memory.remembered", data=data, session_id=session_id, run_id=run_id)]
        case Superseded(memory_id=memory_id, replaced=replaced):
            data = {"id": memory_id, "layer": draft.layer, "supersedes": list(replaced)}
            return [Fact(type="memory.superseded", data=data, session_id=session_id, run_id=run_id)]
        case Duplicate() | Refused():
            return []
    assert_never(written)
