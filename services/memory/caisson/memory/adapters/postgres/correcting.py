"""Correcting what is stored. What was made from a corrected memory is made again in the same transaction."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from caisson.common.errors import Conflict, InvalidInput
from caisson.common.postgres import Connection, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.forgetting import check_owner
from caisson.memory.adapters.postgres.rows import Row, gate, memory_of
from caisson.memory.adapters.postgres.summaries import Summaries
from caisson.memory.adapters.postgres.tombstones import Tombstones
from caisson.memory.domain.ends import End, Endless, check_expires_at, check_valid_to
from caisson.memory.domain.forgetting import summaries_above
from caisson.memory.domain.layers import FACTUAL, Layer
from caisson.memory.domain.memories import SUMMARIES, Memory
from caisson.memory.domain.principals import HardFilter
from caisson.memory.domain.writing import Correction


class PostgresCorrecting:
    """The domain's `Correcting`."""

    def __init__(self, queries: Any, accounts: Accounts, *, clock: Callable[[], datetime]) -> None:
        self._sql = queries
        self._accounts = accounts
        self._clock = clock

    async def correct(self, id_: str, correction: Correction, filter_: HardFilter) -> Memory:
        """Change a memory that the principal may change; raise NotFound, Denied or Conflict."""
        principal = filter_.principal
        async with self._accounts.writing(principal.tenant, principal.user) as (connection, before):
            row = await self._sql.read_memory(
                connection, **gate(filter_), own=principal.own_scope, id=id_, as_of=None
            )
            check_owner(row, principal)
            await self._check(connection, row, correction, filter_)
            await self._check_ends(connection, row, correction, filter_)
            changed = memory_of(await self._write(connection, row, correction, filter_))
            if changed.text != row["text"] or changed.expires_at != row["expires_at"]:
                await self._follow_above(connection, changed, rebuild=changed.text != row["text"])
            await self._accounts.close(connection, principal.tenant, principal.user, before)
        return changed

    async def _check(self, connection: Connection, row: Row, correction: Correction, filter_: HardFilter) -> None:
        if correction.expected_version not in {None, row["version"]}:
            raise Conflict(f"the memory is at version {row['version']}, not {correction.expected_version}")
        if row["status"] == "superseded":
            raise Conflict(f"the memory is superseded by {row['superseded_by']}; its history is not changed")
        wording = correction.wording
        if wording is None:
            return
        place = {"tenant": row["tenant_id"], "content_hash": wording.content_hash}
        tombstones = Tombstones(self._sql, connection, filter_.principal.tenant, now=self._clock())
        if await tombstones.forbids(row["owner_scope"], wording):
            raise InvalidInput("a memory of this text was forgotten", field="text")
        await self._sql.drop_expired_in_the_way(
            connection, **place, owner=row["owner_scope"], now=self._clock(), external_id=None, fact_key=None
        )
        if twin := await self._sql.twin_of(connection, **place, memory=row["memory_id"]):
            raise Conflict(f"this text is remembered already, as {twin}")

    async def _check_ends(
        self, connection: Connection, row: Row, correction: Correction, filter_: HardFilter
    ) -> None:
        if correction.expires_at is not None:
            sources_end = None
            if row["provenance_kind"] in SUMMARIES:
                sources_end = await self._sql.first_end_of_sources(
                    connection, tenant=row["tenant_id"], memory=row["memory_id"]
                )
            check_expires_at(
                correction.expires_at, layer=Layer(row["layer"]), now=self._clock(), sources_end=sources_end
            )
        if correction.valid_to is not None:
            next_from = await self._next_fact(connection, row, filter_)
            check_valid_to(correction.valid_to, valid_from=row["valid_from"], next_from=next_from)

    async def _next_fact(self, connection: Connection, row: Row, filter_: HardFilter) -> datetime | None:
        """Return when the fact begins that follows one that can be superseded."""
        if row["fact_key"] is None or Layer(row["layer"]) not in FACTUAL:
            return None
        place = {"owner": row["owner_scope"], "fact_key": row["fact_key"]}
        await self._sql.drop_expired_in_the_way(
            connection, **place, tenant=row["tenant_id"], now=self._clock(), content_hash=None, external_id=None
        )
        rows = await fetch_all(
            self._sql.facts_around(
                connection,
                **gate(filter_),
                **place,
                scope_key=row["scope_key"],
                layer=row["layer"],
                at=row["valid_from"],
                memory=row["memory_id"],
            )
        )
        return next((following["valid_from"] for following in rows if not following["before"]), None)

    async def _write(self, connection: Connection, row: Row, correction: Correction, filter_: HardFilter) -> Row:
        wording = correction.wording
        changed: Row = await self._sql.correct_memory(
            connection,
            **gate(filter_),
            memory=row["memory_id"],
            text=wording.text if wording else None,
            content_hash=wording.content_hash if wording else None,
            terms=wording.terms if wording else None,
            trust=wording.trust if wording else None,
            importance=correction.importance,
            confidence=correction.confidence,
            valid_to=_moment(correction.valid_to),
            endless=isinstance(correction.valid_to, Endless),
            expires_at=_moment(correction.expires_at),
            kept_for_good=isinstance(correction.expires_at, Endless),
            tags=None if correction.tags is None else list(correction.tags),
            metadata=correction.metadata,
            wake=correction.wake,
            change="woken" if correction.wake and row["status"] == "cold" else "corrected",
        )
        return changed

    async def _follow_above(self, connection: Connection, changed: Memory, *, rebuild: bool) -> None:
        """What was made from a memory says what it says now, and lasts no longer than it."""
        tenant = changed.tenant
        rows = await fetch_all(self._sql.graph_around(connection, tenant=tenant, ids=[changed.memory_id], owners=[]))
        above = summaries_above(
            changed.memory_id,
            edges=[(row["memory_id"], row["source_id"]) for row in rows],
            summaries={row["memory_id"] for row in rows if row["is_summary"]},
        )
        if rebuild:
            await Summaries(self._sql, connection, tenant, now=self._clock()).rebuild(above, wipe=False)
        if changed.expires_at is not None:
            await self._sql.shorten_lives(connection, tenant=tenant, ids=list(above), expires_at=changed.expires_at)


def _moment(end: End | None) -> datetime | None:
    return None if isinstance(end, Endless) else end
