"""Three tenants whose names begin alike, with memories of every kind, and what SQL says of them in words of its own.

Every text has a word of its own, so that whatever an answer is made of, it can be searched for what it tells.
"""

import random
import re
import secrets
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from caisson.common.ids import TenantId
from caisson.common.memories import Caller, NewMemory, Provenance, Remembered
from caisson.common.postgres import Pool
from caisson.memory.domain.layers import Layer
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder

WORDS = ("amber", "birch", "copper", "delta", "ember", "fjord", "garnet", "heron")
USERS = ("ana", "ana2", "an", "user:ana")
SCOPES = ("team:a", "team:ab", "team", "tenant2", "user:an")
SESSIONS = (None, "ses_1", "ses_2")
SUBJECTS = ("thing", "Thing", "other")
EXTERNAL_IDS = ("profile", "mem-1", "./a.md_1", "0")
NOW = datetime.now(UTC)
PAST = tuple(NOW + timedelta(days=days) for days in (-400, -200, -100, -10))
MEMORIES = 160

READABLE = """
SELECT memory_id FROM memory.memories
WHERE tenant_id = $1 AND EXISTS (SELECT 1 FROM unnest(scopes) AS scope WHERE scope = ANY ($2::text[]))
  AND (expires_at IS NULL OR expires_at > $3)
"""
LISTED = f"""{READABLE} AND valid_from <= $4 AND (valid_to IS NULL OR valid_to > $4)
  AND ($5::text IS NULL OR layer = $5) AND ($6::text IS NULL OR status = $6) AND ($7::text IS NULL OR subject = $7)
ORDER BY created_at DESC, memory_id DESC
"""
SAID = """
SELECT text FROM memory.memories WHERE tenant_id = $1 AND memory_id = ANY ($2::text[])
UNION SELECT text FROM memory.history WHERE tenant_id = $1 AND memory_id = ANY ($2::text[]) AND text IS NOT NULL
"""
EVERYTHING = """
SELECT md5(string_agg(line, E'\\n' ORDER BY line)) FROM (
    SELECT m::text AS line FROM memory.memories m WHERE tenant_id = ANY ($1::text[])
    UNION ALL SELECT h::text FROM memory.history h WHERE tenant_id = ANY ($1::text[])
    UNION ALL SELECT s::text FROM memory.sources s WHERE tenant_id = ANY ($1::text[])
    UNION ALL SELECT t::text FROM memory.tombstones t WHERE tenant_id = ANY ($1::text[])) stored
"""
IDS = "SELECT tenant_id, memory_id FROM memory.memories WHERE tenant_id = ANY ($1) ORDER BY created_at, memory_id"

_ID = re.compile(r"mem_[0-9a-z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD = re.compile(r"\bn\d+x\b")


@dataclass(frozen=True, kw_only=True, repr=False)
class World:
    """`audience` knows of each text's own word to which scopes of which tenant it was ever said."""

    desk: Desk
    tenants: tuple[TenantId, ...]
    desks: dict[TenantId, Desk] = field(default_factory=dict)
    audience: dict[str, list[tuple[TenantId, frozenset[str]]]] = field(default_factory=lambda: defaultdict(list))

    def of(self, tenant: TenantId) -> Desk:
        if tenant not in self.desks:
            self.desks[tenant] = replace(self.desk, tenant=tenant)
        return self.desks[tenant]

    async def say(self, desk: Desk, caller: Caller, new: NewMemory) -> Remembered:
        """Remember, and note who may hear of it."""
        for word in _WORD.findall(new.text):
            scopes = frozenset(new.scopes or [f"user:{caller.user_id}"])
            self.audience[word].append((desk.tenant, scopes))
        [result] = await desk.remember(new, caller=caller)
        return result

    async def everything(self) -> str:
        """Return a digest of all that is stored."""
        return str(await self.desk.pool.fetchval(EVERYTHING, list(self.tenants)))

    async def ids(self) -> list[tuple[TenantId, str]]:
        """Return tenant and id of every memory."""
        return [tuple(row) for row in await self.desk.pool.fetch(IDS, list(self.tenants))]

    async def overheard(self, desk: Desk, caller: Caller, answer: str) -> set[str]:
        """Return the ids and words in an answer that are none of the caller's business."""
        ids = await readable(desk, caller)
        said = {word for row in await desk.rows(SAID, list(ids)) for word in _WORD.findall(row["text"])}
        allowed = allowed_of(caller)
        words = {
            word
            for word in said
            if any(tenant == desk.tenant and scopes & allowed for tenant, scopes in self.audience[word])
        }
        return (set(_ID.findall(answer)) - ids) | (set(_WORD.findall(answer)) - words)


def allowed_of(caller: Caller) -> set[str]:
    """The scopes of a caller, once more and plainly."""
    return {f"user:{caller.user_id}", "tenant", *caller.scopes}


async def readable(desk: Desk, caller: Caller) -> set[str]:
    """Ask SQL itself what a caller may ever see."""
    rows = await desk.rows(READABLE, sorted(allowed_of(caller)), desk.clock())
    return {row["memory_id"] for row in rows}


async def made_world(pool: Pool, index: Outage) -> World:
    """Fill the tenants, let a tenth go cold, and let the index catch up."""
    index.away = False
    rng = random.Random(7)
    desk = Desk(pool=pool, index=index, embedder=WordEmbedder(), clock=Turntable())
    name = f"t{secrets.token_hex(4)}"
    world = World(desk=desk, tenants=(TenantId(name), TenantId(f"{name}0"), TenantId(f"{name}-x")))
    known: list[str] = ["nothing"]
    for number in range(MEMORIES):
        result = await _remember(world, rng, number, known)
        known += [result.id] if result.id else []
    cold = "UPDATE memory.memories SET status = 'cold' WHERE tenant_id = $1 AND status = 'active' AND random() < 0.1"
    for tenant in world.tenants:
        await pool.execute(cold, tenant)
        await world.of(tenant).indexer.relay(1_000)
    return world


async def _remember(world: World, rng: random.Random, number: int, known: list[str]) -> Remembered:
    """Remember something random; what the rules refuse is left out."""
    layer = rng.choice(list(Layer))
    valid_from = rng.choice((None, *PAST))
    begin = valid_from or NOW
    granted = rng.sample(SCOPES, 2)
    external = rng.random() < 0.4
    fields: dict[str, Any] = {
        "text": f"n{number}x {' '.join(rng.choices(WORDS, k=4))}",
        "layer": layer.value,
        "scopes": rng.choice((None, ["tenant"], granted, granted[:1])),
        "valid_from": valid_from,
        "valid_to": rng.choice((None, None, begin + timedelta(days=rng.choice((5, 150, 900))))),
        "expires_at": rng.choice((None, None, NOW + timedelta(hours=1))),
        "outcome": "ok" if layer is Layer.EPISODIC else None,
        "confirmations": 3,
        "external_id": rng.choice(EXTERNAL_IDS) if external else None,
        "provenance": Provenance(
            kind=rng.choice(("person", "consolidation")),
            run_id=f"run_{number}",
            session_id=rng.choice(("ses_1", "ses_2")),
            source=rng.choice((None, rng.choice(known), rng.choice(EXTERNAL_IDS))),
        ),
    }
    if external:
        # What becomes an object of the product's is often its own and others' by turns.
        fields["scopes"] = rng.choice((None, ["tenant", "user:ana"], None))
    if layer in {Layer.SEMANTIC, Layer.EPISODIC} and rng.random() < 0.4:
        fields |= {"subject": rng.choice(SUBJECTS), "attribute": rng.choice(("colour", "size"))}
    desk = world.of(rng.choice(world.tenants))
    user = "ana" if external and fields["scopes"] else rng.choice(USERS)
    return await world.say(desk, desk.caller(user, *granted), NewMemory.model_validate(fields))
