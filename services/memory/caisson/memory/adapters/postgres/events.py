"""Facts for the bus, written in the transaction that makes them true. Invariant: ids and counts, never a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from caisson.common.ids import TenantId, UserId, new_id
from caisson.common.postgres import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened to memories: `type` is `memory.<verb>`."""

    type: str
    data: dict[str, Any]
    session_id: str | None = None
    run_id: str | None = None


async def record(sql: Any, connection: Connection, tenant: TenantId, user: UserId, facts: Sequence[Fact]) -> None:
    """Write facts about a tenant's memories to the outbox."""
    if facts:
        await sql.record_events(
            connection,
            ids=[new_id("evt") for _ in facts],
            tenants=[tenant] * len(facts),
            users=[user] * len(facts),
            sessions=[fact.session_id for fact in facts],
            runs=[fact.run_id for fact in facts],
            types=[fact.type for fact in facts],
            datas=[fact.data for fact in facts],
        )
