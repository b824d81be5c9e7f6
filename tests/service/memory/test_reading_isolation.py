"""Whoever looks something up, on whatever way: no id and no word is told that the hard filter does not admit."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caisson.common.errors import CaissonError, NotFound
from caisson.common.memories import ById, Caller, ListMemories, NewMemory, OfUser, Provenance
from caisson.common.memory_upkeep import Consolidate, Distil, Reconcile, UsageOf
from caisson.memory.domain.layers import Layer
from tests.support.memory_desk import Desk, Outage
from tests.support.memory_world import (
    EXTERNAL_IDS,
    LISTED,
    NOW,
    PAST,
    SCOPES,
    SESSIONS,
    SUBJECTS,
    USERS,
    WORDS,
    World,
    allowed_of,
    readable,
)

Way = Callable[[World, Desk, Caller, dict[str, Any]], Awaitable[Any]]
_SOURCE = re.compile(r'"source":"[^"]*"')


async def _list(_: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    """Walk every page; it is the very list that SQL makes."""
    wishes = {name: asked[name] for name in ("layer", "status", "subject", "as_of")}
    pages, before = [], None
    while True:
        listing = ListMemories(caller=caller, limit=asked["limit"], before=before, **wishes)
        pages.append(await desk.reading.page(listing))
        before = pages[-1].next_before
        if before is None:
            break
    now = desk.clock()
    wanted = (asked["as_of"] or now, asked["layer"], asked["status"], asked["subject"])
    rows = await desk.rows(LISTED, sorted(allowed_of(caller)), now, *wanted)
    assert [item.id for page in pages for item in page.items] == [row["memory_id"] for row in rows]
    return pages


async def _list_from_anothers_cursor(world: World, _: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    other = world.of(asked["other_tenant"])
    page = await other.reading.page(ListMemories(caller=other.caller(asked["other"], *SCOPES), limit=2))
    desk = world.of(asked["tenant"])
    before = asked["id"] if page.next_before is None else page.next_before
    return await desk.reading.page(ListMemories(caller=caller, before=before))


async def _get(_: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    told = await desk.get(asked["id"], caller=caller, as_of=asked["as_of"])
    assert asked["id"] in {told.id, told.external_id}
    return told


async def _history(_: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    return await desk.reading.history(ById(caller=caller, id=asked["id"], as_of=asked["as_of"]))


async def _export(_: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    """Hand out everything that a user owns, and nothing else."""
    pages, resume = [], None
    while True:
        of_user = OfUser(caller=caller, user_id=asked["other"], limit=asked["limit"], resume=resume)
        pages.append(await desk.reading.export(of_user))
        resume = pages[-1].resume
        if resume is None:
            break
    owned = "SELECT memory_id FROM memory.memories WHERE tenant_id = $1 AND owner_scope = $2"
    rows = await desk.rows(owned, f"user:{asked['other']}")
    owns = {row["memory_id"] for row in rows} & await readable(desk, caller)
    assert {item.id for page in pages for item in page.items} == owns
    return pages


async def _usage(_: World, desk: Desk, caller: Caller, __: dict[str, Any]) -> Any:
    """Count the caller's tenant and user, nobody else."""
    usage = await desk.reading.usage(UsageOf(caller=caller))
    counted = """SELECT count(*) FILTER (WHERE status <> 'superseded'), coalesce(sum(bytes), 0)::bigint
                 FROM memory.memories WHERE tenant_id = $1 AND ($2::text IS NULL OR user_id = $2)"""
    [user], [tenant] = await desk.rows(counted, caller.user_id), await desk.rows(counted, None)
    assert (usage.user_rows, usage.user_bytes) == tuple(user)
    assert (usage.tenant_rows, usage.tenant_bytes) == tuple(tenant)
    return usage


async def _recall(_: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    wishes = {name: asked[name] for name in ("query", "as_of", "session_id")}
    return await desk.recalled(caller=caller, k=100, token_budget=100_000, **wishes)


async def _say_again(world: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    """Say what somebody said, or nearly: the answer names what stands there only to whom may see it."""
    found = await desk.pool.fetchval("SELECT text FROM memory.memories WHERE memory_id = $1 LIMIT 1", asked["id"])
    text = f"{asked['query']} {asked['query']}" if found is None else str(found)
    scopes = sorted(allowed_of(caller))[: 1 + asked["limit"] % 3]
    provenance = Provenance(session_id=asked["session_id"], source=asked["id"])
    new = NewMemory(text=text, scopes=scopes, external_id=asked["external_id"], provenance=provenance)
    return await world.say(desk, caller, new)


async def _plan(_: World, desk: Desk, caller: Caller, __: dict[str, Any]) -> Any:
    """Plan with what the caller may change, and nothing that is only shared with it."""
    plan = await desk.consolidating.consolidate(Consolidate(caller=caller, dry_run=True))
    sources = [source for group in plan.groups for source in group["sources"]]
    owners = "SELECT DISTINCT owner_scope FROM memory.memories WHERE tenant_id = $1 AND memory_id = ANY ($2::text[])"
    assert {row["owner_scope"] for row in await desk.rows(owners, sources)} <= allowed_of(caller)
    return plan


async def _distil(_: World, desk: Desk, caller: Caller, asked: dict[str, Any]) -> Any:
    """Go on with a distillation of somebody else's: there is none."""
    other = desk.caller(f"not {caller.user_id}", *SCOPES)
    theirs = await desk.distilling.distil(Distil(caller=other, candidates=["the pot n0x is theirs"]))
    assert theirs.complete
    with pytest.raises(NotFound):
        await desk.distilling.distil(Distil(caller=caller, candidates=[], resume=theirs.job_id))
    return await desk.distilling.distil(Distil(caller=caller, candidates=[asked["query"] * 9]))


async def _reconcile(_: World, desk: Desk, caller: Caller, __: dict[str, Any]) -> Any:
    """Count what the index holds of the caller's tenant, and nothing of another's."""
    told = await desk.reconciling.reconcile(Reconcile(caller=caller))
    held = "SELECT count(*) FROM memory.memories WHERE tenant_id = $1"
    assert told.checked <= await desk.pool.fetchval(held, desk.tenant)
    assert told.orphaned == 0
    return told


WAYS: list[Way] = [
    _list,
    _list_from_anothers_cursor,
    _get,
    _history,
    _export,
    _usage,
    _recall,
    _say_again,
    _plan,
    _distil,
    _reconcile,
]


@st.composite
def lookups(draw: st.DrawFn) -> dict[str, Any]:
    """Return who asks, how, and for what."""
    place = draw(st.integers(0, 10_000))
    return {
        "tenant": draw(st.sampled_from((0, 1, 2))),
        "other_tenant": draw(st.sampled_from((0, 1, 2))),
        "user": draw(st.sampled_from(USERS)),
        "other": draw(st.sampled_from(USERS)),
        "granted": draw(st.lists(st.sampled_from((*SCOPES, "user:ana")), max_size=3)),
        "place": place,
        "external_id": draw(st.sampled_from((None, None, *EXTERNAL_IDS))),
        "by_external_id": draw(st.integers(0, 3)) == 0,
        "query": " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))),
        "layer": draw(st.sampled_from((None, None, *[layer.value for layer in Layer]))),
        "status": draw(st.sampled_from((None, None, "active", "cold"))),
        "subject": draw(st.sampled_from((None, None, *SUBJECTS))),
        "as_of": draw(st.sampled_from((None, None, None, *PAST, NOW + timedelta(days=30)))),
        "session_id": draw(st.sampled_from(SESSIONS)),
        "limit": draw(st.sampled_from((1, 7, 200))),
        "away": draw(st.sampled_from(("", "", "index", "embedder"))),
        "ahead": draw(st.sampled_from((timedelta(), timedelta(), timedelta(hours=2)))),
    }


async def _set_up(world: World, index: Outage, asked: dict[str, Any]) -> tuple[Desk, Caller]:
    """Turn numbers into tenants and ids, and take away what is to be away."""
    stored = await world.ids()
    asked["tenant"], asked["other_tenant"] = world.tenants[asked["tenant"]], world.tenants[asked["other_tenant"]]
    asked["id"] = stored[asked["place"] % len(stored)][1]
    if asked["by_external_id"]:
        asked["id"] = EXTERNAL_IDS[asked["place"] % len(EXTERNAL_IDS)]
    desk = world.of(asked["tenant"])
    index.away, desk.embedder.away = asked["away"] == "index", asked["away"] == "embedder"
    desk.clock.ahead = asked["ahead"]
    return desk, desk.caller(asked["user"], *asked["granted"])


@pytest.mark.parametrize("way", WAYS, ids=[way.__name__.strip("_") for way in WAYS])
@given(asked=lookups())
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_nothing_is_told_beyond_the_hard_filter(
    world: World, word_index: Outage, way: Way, asked: dict[str, Any]
) -> None:
    desk, caller = await _set_up(world, word_index, asked)
    try:
        answer = _shown(await way(world, desk, caller, asked))
    except CaissonError as error:
        answer = error.detail
    finally:
        word_index.away = desk.embedder.away = False
    overheard = await world.overheard(desk, caller, answer)
    assert overheard == set(), [answer[max(0, answer.find(one) - 200) : answer.find(one) + 100] for one in overheard]


def _shown(answer: Any) -> str:
    """Return an answer as text, but for what writers called their source: that is their own text."""
    if isinstance(answer, list):
        return "\n".join(map(_shown, answer))
    return _SOURCE.sub("", answer.model_dump_json())
