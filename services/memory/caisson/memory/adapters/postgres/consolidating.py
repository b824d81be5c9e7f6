"""Several episodes become one memory. Invariant: a group is stored whole, with its sources cold, or not at all."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from caisson.common.ids import TenantId, new_id
from caisson.common.postgres import Connection, Pool, acquire, fetch_all
from caisson.memory.adapters.postgres.accounts import Accounts
from caisson.memory.adapters.postgres.events import Fact, record
from caisson.memory.adapters.postgres.rows import Row, hard, memory_of
from caisson.memory.adapters.postgres.tombstones import Tombstones
from caisson.memory.domain.consolidating import Mark, Place, Quiet
from caisson.memory.domain.consolidation import MAX_EPISODE_CHARS, Group
from caisson.memory.domain.drafting import Wording
from caisson.memory.domain.hashing import context_key, fact_key, scope_key
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.leasing import Lease
from caisson.memory.domain.memories import Memory
from caisson.memory.domain.principals import HardFilter, Principal
from caisson.memory.domain.quotas import Account

SUMMARY = b"summary"
"""Stands for the fact of a summary of no single fact: beside a statement of the same words, it is its own."""


class PostgresConsolidating:
    """The domain's `Consolidating`."""

    def __init__(self, pool: Pool, queries: Any, accounts: Accounts, *, clock: Callable[[], datetime]) -> None:
        self._pool = pool
        self._sql = queries
        self._accounts = accounts
        self._clock = clock

    async def episodes(self, filter_: HardFilter, limit: int, *, after: Mark) -> list[Memory]:
        """Return the oldest active episodes after a mark that the principal may change."""
        asked = {name: value for name, value in hard(filter_).items() if name != "layers"}
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.active_episodes(
                    connection, **asked, after_at=after.created_at, after_id=after.memory_id, limit=limit
                )
            )
        return [memory_of(row) for row in rows]

    async def quiet_episodes(self, place: Place, quiet: Quiet, limit: int, *, after: Mark) -> list[Memory]:
        """Return the oldest quiet episodes of a place after a mark."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.quiet_episodes(
                    connection,
                    tenant=place.tenant,
                    allowed=list(place.scopes),
                    owner=place.owner_scope,
                    scope_key=place.scope_key,
                    now=quiet.now,
                    since=quiet.since,
                    chars=MAX_EPISODE_CHARS,
                    after_at=after.created_at,
                    after_id=after.memory_id,
                    limit=limit,
                )
            )
        return [memory_of(row) for row in rows]

    async def places(self, quiet: Quiet, *, least: int, limit: int, after: Place | None = None) -> list[Place]:
        """Return the next places with at least so many quiet episodes."""
        asked = {"now": quiet.now, "since": quiet.since, "chars": MAX_EPISODE_CHARS, "least": least, "limit": limit}
        async with acquire(self._pool) as connection:
            rows = await fetch_all(
                self._sql.places_to_consolidate(
                    connection,
                    **asked,
                    after_tenant=after.tenant if after else "",
                    after_owner=after.owner_scope if after else "",
                    after_scope_key=after.scope_key if after else b"",
                )
            )
        return [_place(row) for row in rows]

    async def own_places(self, quiet: Quiet, principal: Principal, *, least: int, limit: int) -> list[Place]:
        """Return the first places whose memories a principal may change."""
        asked = {"now": quiet.now, "since": quiet.since, "chars": MAX_EPISODE_CHARS, "least": least, "limit": limit}
        whose = {"tenant": principal.tenant, "owners": sorted(principal.allowed)}
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.own_places_to_consolidate(connection, **asked, **whose))
        return [_place(row) for row in rows]

    async def consolidate(
        self, group: Group, principal: Principal, wording: Wording, *, lease: Lease | None = None
    ) -> str | None:
        """Make one memory of a group and let its sources go cold; None where a source changed or was forgotten."""
        try:
            async with self._accounts.writing(principal.tenant, principal.user, lease=lease) as (connection, before):
                return await self._consolidate(connection, group, principal, wording, before)
        except _SourcesChanged:
            return None

    async def _consolidate(
        self, connection: Connection, group: Group, principal: Principal, wording: Wording, before: Account
    ) -> str | None:
        tenant, user, now = principal.tenant, principal.user, self._clock()
        place = {"tenant": tenant, "owner": group.owner_scope}
        if await Tombstones(self._sql, connection, tenant, now=now).forbids(group.owner_scope, wording):
            return None
        await self._cool(connection, group, tenant, now)
        known = await self._sql.same_summary(
            connection, **place, scope_key=scope_key(group.scopes), content_hash=wording.content_hash, now=now
        )
        if known:
            await self._sql.confirm_memory(connection, tenant=tenant, memory=known, now=now)
        memory_id = known or await self._insert(connection, group, principal, wording, now)
        await self._sql.add_sources(connection, tenant=tenant, memory=memory_id, ids=list(group.ids))
        await self._accounts.close(connection, tenant, user, before)
        data = {"id": memory_id, "layer": Layer.SEMANTIC, "sources": len(group.episodes)}
        await record(self._sql, connection, tenant, user, [Fact(type="memory.remembered", data=data)])
        return memory_id

    async def _cool(self, connection: Connection, group: Group, tenant: TenantId, now: datetime) -> None:
        versions = [episode.version for episode in group.episodes]
        cooled = await fetch_all(
            self._sql.cool_memories(connection, tenant=tenant, ids=list(group.ids), versions=versions, now=now)
        )
        if len(cooled) != len(group.episodes):
            raise _SourcesChanged

    async def _insert(
        self, connection: Connection, group: Group, principal: Principal, wording: Wording, now: datetime
    ) -> str:
        memory_id = new_id("mem")
        await self._sql.drop_expired_in_the_way(
            connection,
            tenant=principal.tenant,
            owner=group.owner_scope,
            now=now,
            content_hash=wording.content_hash,
            external_id=None,
            fact_key=fact_key(group.subject, group.attribute),
        )
        fact = await self._free_fact(connection, group, principal, now)
        await self._sql.insert_memory(
            connection,
            tenant=principal.tenant,
            memory=memory_id,
            external_id=None,
            user=principal.user,
            owner=group.owner_scope,
            scopes=list(group.scopes),
            scope_key=scope_key(group.scopes),
            layer=Layer.SEMANTIC,
            status="active",
            text=wording.text,
            content_hash=wording.content_hash,
            terms=wording.terms,
            trust=wording.trust,
            context_key=context_key(Layer.SEMANTIC, fact=fact or SUMMARY, outcome=None, run=None, session=None),
            subject=group.subject,
            attribute=group.attribute if fact else None,
            fact_key=fact,
            outcome=None,
            confirmations=len(group.episodes),
            importance=group.importance,
            confidence=group.confidence,
            valid_from=min(episode.valid_from for episode in group.episodes),
            valid_to=None,
            expires_at=group.expires_at,
            tags=[],
            metadata={},
            provenance_kind="consolidation",
            run=None,
            session=None,
            source=None,
            successor=None,
            change="consolidated",
            now=now,
        )
        return memory_id

    async def _free_fact(
        self, connection: Connection, group: Group, principal: Principal, now: datetime
    ) -> bytes | None:
        """Return the fact that the episodes agree on, unless one was stated: a summary replaces no statement."""
        fact = fact_key(group.subject, group.attribute)
        asked = {"tenant": principal.tenant, "allowed": sorted(principal.allowed), "now": now}
        if fact and await self._sql.has_current_fact(
            connection, **asked, fact_key=fact, owner=group.owner_scope, layer=Layer.SEMANTIC
        ):
            return None
        return fact


def _place(row: Row) -> Place:
    return Place(
        tenant=TenantId(row["tenant_id"]),
        owner_scope=row["owner_scope"],
        scope_key=row["scope_key"],
        scopes=tuple(row["scopes"]),
    )


class _SourcesChanged(Exception):
    """A source is no longer as the plan saw it; the transaction must not stand."""
