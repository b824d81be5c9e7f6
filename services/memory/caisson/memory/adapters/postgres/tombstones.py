"""Tombstones in the store. Invariant: what an owner's memory still says in any spelling is not refused for another's.

A text is looked up by its hash, and then by the looser one, which is compared with the texts that are there.
"""

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.postgres import Connection, fetch_all
from caisson.memory.adapters.postgres.rows import Row
from caisson.memory.domain.drafting import Wording
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.terms import longest
from caisson.memory.domain.tombstones import bare, bare_hash

_PAGE = 50


class Tombstones:
    """What a tenant's owners have forgotten, inside a transaction."""

    def __init__(self, sql: Any, connection: Connection, tenant: TenantId, *, now: datetime) -> None:
        self._sql = sql
        self._connection = connection
        self._tenant = tenant
        self._now = now

    async def forbids(self, owner: str, wording: Wording) -> bool:
        """Whether a text of an owner was forgotten."""
        found = await self._sql.find_tombstone(self._connection, **self._keys(owner, wording))
        if found is None:
            return False
        return bool(found["of_this_text"]) or not await self._is_still_said(owner, wording)

    async def lift(self, owner: str, wording: Wording) -> None:
        """Let a text be said again."""
        await self._sql.lift_tombstone(self._connection, **self._keys(owner, wording))

    async def bury(self, memory_ids: Collection[str]) -> int:
        """Leave tombstones for every text that these memories ever had and no other one of the owner has.

        Return the number of new ones.
        """
        going, made = list(memory_ids), 0
        for at in range(0, len(going), _PAGE):
            page = going[at : at + _PAGE]
            rows = await fetch_all(
                self._sql.texts_to_bury(self._connection, tenant=self._tenant, ids=page, going=going)
            )
            texts = [row["text"] for row in rows]
            hashes = await beside(texts, partial(_bare_hashes, self._tenant, texts))
            made += await self._write(rows, hashes)
        return made

    async def _write(self, rows: list[Row], hashes: list[bytes]) -> int:
        return int(
            await self._sql.bury(
                self._connection,
                tenant=self._tenant,
                owners=[row["owner_scope"] for row in rows],
                content_hashes=[row["content_hash"] for row in rows],
                bare_hashes=hashes,
                now=self._now,
            )
        )

    async def _is_still_said(self, owner: str, wording: Wording) -> bool:
        if not wording.terms:
            return False
        rows = await fetch_all(
            self._sql.texts_of_terms(
                self._connection,
                tenant=self._tenant,
                owner=owner,
                now=self._now,
                words=longest(wording.terms),
                terms=wording.terms,
            )
        )
        texts = [row["text"] for row in rows]
        return await beside([wording.text, *texts], partial(_is_among, wording.text, texts))

    def _keys(self, owner: str, wording: Wording) -> dict[str, Any]:
        hashes = {"content_hash": wording.content_hash, "bare_hash": wording.bare_hash}
        return {"tenant": self._tenant, "owner": owner} | hashes


def _bare_hashes(tenant: TenantId, texts: list[str]) -> list[bytes]:
    return [bare_hash(tenant, text) for text in texts]


def _is_among(text: str, texts: list[str]) -> bool:
    asked = bare(text)
    return any(bare(other) == asked for other in texts)
