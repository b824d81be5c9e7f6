"""One question over every surface and every leg: the same memories, all of the asker's own tenant."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from caisson.client.client import Client
from caisson.common import subjects
from caisson.common.errors import NotFound, Unavailable
from caisson.common.memories import ById, Caller, ListMemories, MemoryPage
from caisson.common.recalls import Context, Recalled, Search
from caisson.memory.domain.indexing import IndexQuery
from caisson.memory.handlers.callers import filter_of
from tests.support.command_line import caisson
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, remember

QUERY = "when does the harbour gate open"


async def test_a_scoped_question_has_one_answer_over_every_surface(plane: MemoryPlane) -> None:
    """M7. HTTP, the bus inside, the client and the command line tell the same ids; there is no other way to ask."""
    tenant = new_tenant()
    seen = set()
    for who, scope, granted in (
        ("ana", "user:ana", True),
        ("ana", "tenant", True),
        ("ana", "team:a", True),
        ("bo", "user:bo", False),
        ("bo", "team:ab", False),
    ):
        async with plane.asker(tenant, who, scopes="team:a,team:ab") as writer:
            id_ = await remember(writer, f"the harbour gate of {scope} opens in the morning", scopes=[scope])
            seen |= {id_} if granted else set()
    async with plane.asker(new_tenant(), scopes="team:a") as stranger:
        await remember(stranger, "the harbour gate opens in the morning", scopes=["team:a"])

    for name, ask in ways_of_asking(plane, tenant).items():
        assert await ask() == seen, name


def ways_of_asking(plane: MemoryPlane, tenant: str) -> dict[str, Callable[[], Awaitable[set[str]]]]:
    """Every surface that tells memories, asked as ana with team:a."""
    body = {"query": QUERY, "k": 50}
    caller = Caller(tenant_id=tenant, user_id="ana", scopes=["team:a"])

    async def over_http(path: str) -> set[str]:
        async with plane.asker(tenant, scopes="team:a") as asker:
            told = (await asker.post(f"/v1/memories/{path}", json=body)).json()
        return set(told["ids"]) if path == "context" else {hit["memory"]["id"] for hit in told["hits"]}

    async def listed() -> set[str]:
        async with plane.asker(tenant, scopes="team:a") as asker:
            return {item["id"] for item in (await asker.get("/v1/memories")).json()["items"]}

    async def inside() -> set[str]:
        request = Search(caller=caller, query=QUERY, k=50)
        told = await plane.bus.call(subjects.MEMORY_SEARCH, request, Recalled)
        context = await plane.bus.call(subjects.MEMORY_CONTEXT, request, Context)
        page = await plane.bus.call(subjects.MEMORY_LIST, ListMemories(caller=caller), MemoryPage)
        assert {hit.memory.id for hit in told.hits} == set(context.ids) == {item.id for item in page.items}
        return set(context.ids)

    async def over_the_client() -> set[str]:
        async with Client(plane.gateway.addresses["http"], plane.ground.platform_key) as product:
            recalled = await product.for_tenant(tenant, "ana").with_scopes("team:a").recall(QUERY, k=50)
        return {hit.memory.id for hit in recalled.hits}

    async def over_the_command_line() -> set[str]:
        here = {
            "CAISSON_URL": plane.gateway.addresses["http"],
            "CAISSON_API_KEY": plane.ground.platform_key,
            "CAISSON_TENANT": tenant,
            "CAISSON_USER": "ana",
        }
        arguments = ("memory", "search", QUERY, "--scope", "team:a", "--json")
        ended = await asyncio.to_thread(caisson, *arguments, env=here)
        return {hit["memory"]["id"] for hit in json.loads(ended.stdout)["hits"]}

    return {
        "search": lambda: over_http("search"),
        "context": lambda: over_http("context"),
        "list": listed,
        "bus": inside,
        "client": over_the_client,
        "command line": over_the_command_line,
    }


@LOCAL_MODE_WARNINGS
async def test_each_leg_alone_finds_memories_of_its_own_tenant_only(each_desk: Desk) -> None:
    """M8. Dense, sparse, both, full text, exact ids, past times and what is near a new text: all of them A's own."""
    desk = each_desk
    foreign = Desk(pool=desk.pool, index=desk.index, embedder=desk.embedder, clock=desk.clock)
    texts = [f"the sluice at pier {n} is shut" for n in range(5)]
    own = {await desk.store(text, scopes=["tenant"], external_id=text) for text in texts}
    theirs = {await foreign.store(text, scopes=["tenant"], external_id=text) for text in texts}
    query, now = texts[0], desk.clock()
    filter_ = filter_of(desk.caller(), now)
    vector = (await desk.embedder.embed([query]))[0]
    for dense, text in ((vector, None), (None, query), (vector, query)):
        try:
            found = (await desk.index.search(IndexQuery(dense=dense, text=text, limit=50), filter_)).found
        except Unavailable:
            continue
        assert {candidate.memory_id for candidate in found} == own
    for as_of in (None, now):
        told = await desk.recalled(query, k=50, as_of=as_of)
        assert {hit.memory.id for hit in told.hits} == own
        assert (told.diagnostics.found, told.diagnostics.mismatched) == (5, 0)
        page = await desk.reading.page(ListMemories(caller=desk.caller(), as_of=as_of))
        assert {item.id for item in page.items} == own
        assert (await desk.get(query, as_of=as_of)).id in own
        for id_ in theirs:
            with pytest.raises(NotFound):
                await desk.reading.history(ById(caller=desk.caller(), id=id_, as_of=as_of))
    [near] = await desk.remember("the sluice at pier 7 is shut", scopes=["tenant"])
    assert near.similar_to in own | {None}
