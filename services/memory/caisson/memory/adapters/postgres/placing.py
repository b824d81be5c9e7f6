"""Where one draft goes: beside, over or instead of what stands there. Runs under the tenant's lock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from caisson.common.ids import new_id
from caisson.common.postgres import Connection, fetch_all
from caisson.memory.adapters.postgres.rows import standing_of, values_of
from caisson.memory.adapters.postgres.tombstones import Tombstones
from caisson.memory.domain.drafting import Draft
from caisson.memory.domain.hashing import external_memory_id
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.standing import Add, Confirm, Restate, Standing, settle
from caisson.memory.domain.writing import Created, Duplicate, Refused, Superseded, Written

_MOMENT = timedelta(microseconds=1)
_FORGOTTEN = "forgotten: a memory of this text was deleted; a person may bring it back with confirmations=1"
_ENDED = "session ended: nothing more is remembered for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """When a draft is in force, between the fact before it and the fact after it."""

    starts: datetime
    ends: datetime | None
    before: str | None
    after: str | None


class Placing:
    """One draft on its way into the store."""

    def __init__(
        self, sql: Any, connection: Connection, principal: Principal, draft: Draft, *, now: datetime
    ) -> None:
        self._sql = sql
        self._connection = connection
        self._principal = principal
        self._draft = draft
        self._now = now
        self._tenant = principal.tenant
        self._gate = {"tenant": principal.tenant, "allowed": sorted(principal.allowed), "now": now}

    async def place(self) -> Written:
        """Store the draft, or say why it is not."""
        if await self._has_ended():
            return Refused(reason=_ENDED)
        decision = settle(self._draft, await self._standing(), self._now)
        if isinstance(decision, Confirm):
            await self._sql.confirm_memory(
                self._connection, tenant=self._tenant, memory=decision.memory_id, now=self._now
            )
            return Duplicate(memory_id=decision.memory_id)
        if await self._is_forgotten():
            return Refused(reason=_FORGOTTEN)
        return await self._write(decision)

    async def _standing(self) -> list[Standing]:
        draft = self._draft
        rows = await fetch_all(
            self._sql.standing(
                self._connection,
                **self._gate,
                owner=draft.owner_scope,
                scope_key=draft.scope_key,
                layer=draft.layer,
                external_id=draft.external_id,
                content_hash=draft.wording.content_hash,
                twin=draft.twin.memory_id if draft.twin else None,
                twin_version=draft.twin.version if draft.twin else None,
            )
        )
        return [standing_of(row) for row in rows]

    async def _has_ended(self) -> bool:
        draft = self._draft
        if draft.layer is not Layer.SESSION:
            return False
        ended = self._sql.has_session_ended(self._connection, tenant=self._tenant, session=draft.origin.session_id)
        return bool(await ended)

    async def _is_forgotten(self) -> bool:
        draft = self._draft
        tombstones = Tombstones(self._sql, self._connection, self._tenant, now=self._now)
        forgotten = await tombstones.forbids(draft.owner_scope, draft.wording)
        if forgotten and draft.is_confirmed:
            await tombstones.lift(draft.owner_scope, draft.wording)
            return False
        return forgotten

    async def _write(self, decision: Add | Restate) -> Written:
        match decision:
            case Add(ended=ended):
                memory_id = self._new_memory_id()
            case Restate(memory_id=memory_id):
                ended = ()
        await self._clear_the_way()
        span = await self._span(memory_id)
        replaced = tuple(dict.fromkeys((*ended, *([span.before] if span.before else []))))
        for older in replaced:
            await self._close(older, successor=memory_id, at=span.starts)
        if isinstance(decision, Restate):
            await self._restate(memory_id, span)
        else:
            await self._insert(memory_id, span)
        await self._link(memory_id)
        if replaced or isinstance(decision, Restate):
            return Superseded(memory_id=memory_id, replaced=replaced)
        return Created(memory_id=memory_id, similar_to=self._draft.similar_to)

    async def _restate(self, memory_id: str, span: _Span) -> None:
        await self._sql.restate_memory(self._connection, **self._values(memory_id, span))
        if span.after is not None and span.ends is not None:
            await self._close(memory_id, successor=span.after, at=span.ends)

    async def _insert(self, memory_id: str, span: _Span) -> None:
        draft = self._draft
        await self._sql.insert_memory(
            self._connection,
            **self._values(memory_id, span),
            external_id=draft.external_id,
            user=self._principal.user,
            owner=draft.owner_scope,
            status="superseded" if span.after else "active",
            successor=span.after,
            change="remembered",
        )

    def _values(self, memory_id: str, span: _Span) -> dict[str, Any]:
        whose = {"tenant": self._tenant, "memory": memory_id, "now": self._now}
        return values_of(self._draft) | whose | {"valid_from": span.starts, "valid_to": span.ends}

    async def _clear_the_way(self) -> None:
        draft = self._draft
        await self._sql.drop_expired_in_the_way(
            self._connection,
            tenant=self._tenant,
            now=self._now,
            owner=draft.owner_scope,
            content_hash=draft.wording.content_hash,
            external_id=draft.external_id,
            fact_key=draft.fact_key,
        )

    async def _span(self, memory_id: str) -> _Span:
        """A fact ends the one in force when it begins; the next one ends a fact that comes late."""
        draft = self._draft
        starts = draft.valid_from or self._now
        if not draft.is_fact:
            return _Span(starts=starts, ends=draft.valid_to, before=None, after=None)
        rows = await fetch_all(
            self._sql.facts_around(
                self._connection,
                **self._gate,
                owner=draft.owner_scope,
                scope_key=draft.scope_key,
                layer=draft.layer,
                fact_key=draft.fact_key,
                at=starts,
                memory=memory_id,
            )
        )
        before = next((row for row in rows if row["before"]), None)
        after = next((row for row in rows if not row["before"]), None)
        if before is not None and draft.valid_from is None:
            starts = max(starts, before["valid_from"] + _MOMENT)
        ends = [end for end in (draft.valid_to, after["valid_from"] if after else None) if end is not None]
        return _Span(
            starts=starts,
            ends=min(ends, default=None),
            before=before["memory_id"] if before else None,
            after=after["memory_id"] if after else None,
        )

    async def _close(self, memory_id: str, *, successor: str, at: datetime) -> None:
        draft = self._draft
        await self._sql.close_memory(
            self._connection, tenant=self._tenant, memory=memory_id, successor=successor, at=at, now=self._now
        )
        await self._sql.cool_sources(
            self._connection,
            tenant=self._tenant,
            memory=memory_id,
            fact_key=draft.fact_key,
            allowed=self._gate["allowed"],
            owner=draft.owner_scope,
            scope_key=draft.scope_key,
            at=at,
            now=self._now,
        )

    async def _link(self, memory_id: str) -> None:
        draft = self._draft
        if draft.origin.source:
            await self._sql.link_source(
                self._connection, **self._gate, memory=memory_id, source=draft.origin.source, owner=draft.owner_scope
            )

    def _new_memory_id(self) -> str:
        draft = self._draft
        if draft.external_id is None:
            return new_id("mem")
        return external_memory_id(self._tenant, draft.owner_scope, draft.external_id)
