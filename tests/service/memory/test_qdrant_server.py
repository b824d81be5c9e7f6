"""The index in a server, over the client's imitation of one: one embedder, the server's fusion, plain failures."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from qdrant_client import AsyncQdrantClient, models

from caisson.common.errors import Misconfigured, Unavailable
from caisson.memory.adapters.bm25 import Bm25
from caisson.memory.adapters.point_payload import Field
from caisson.memory.adapters.qdrant_server import ServerIndex
from caisson.memory.adapters.qdrant_server_collections import PREFIX, connect, name_of
from caisson.memory.adapters.qdrant_server_requests import dense_leg, filter_of, lexical_leg
from caisson.memory.adapters.restrictions import Restriction, visible
from caisson.memory.domain.indexing import EmbedderIdentity
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_points import IDENTITY, a_filter, a_point, a_tenant, asking, vector_of

pytestmark = LOCAL_MODE_WARNINGS


@pytest.fixture
async def client() -> AsyncIterator[AsyncQdrantClient]:
    opened = AsyncQdrantClient(":memory:")
    yield opened
    await opened.close()


OTHERS = [
    (replace(IDENTITY, dimensions=16), ("32 dimensions", "16 dimensions"), "another length"),
    (replace(IDENTITY, digest="f" * 64), ("0" * 16, "f" * 16), "the same length of another model"),
    (replace(IDENTITY, name="other"), ("test with", "other with"), "another name"),
]


@pytest.mark.parametrize(("other", "told", "why"), OTHERS, ids=[row[2] for row in OTHERS])
async def test_another_embedder_is_refused_unless_it_rebuilds(
    client: AsyncQdrantClient, other: EmbedderIdentity, told: tuple[str, str], why: str
) -> None:
    first = await ServerIndex.open(client, IDENTITY)
    await first.upsert([a_point(a_tenant(), "old")])
    replica = await ServerIndex.open(client, IDENTITY)
    assert await replica.count() == 1, "a replica with the same embedder shares the collection"
    with pytest.raises(Misconfigured) as refused:
        await ServerIndex.open(client, other)
    assert all(part in refused.value.detail for part in told), why
    rebuilt = await ServerIndex.open(client, other, rebuild=True)
    assert await rebuilt.count() == 0
    assert await first.count() == 1, "what was there is kept until the new one is whole"
    again = await ServerIndex.open(client, other)
    await again.drop_older()
    await rebuilt.drop_older()
    assert [found.name for found in (await client.get_collections()).collections] == [name_of(other)]


async def test_what_is_forgotten_while_memories_are_embedded_again_leaves_the_older_collection_too(
    client: AsyncQdrantClient,
) -> None:
    tenant, neighbour = a_tenant(), a_tenant()
    first = await ServerIndex.open(client, IDENTITY)
    texts = {name: a_point(tenant, f"{name} tide", name) for name in ("kept", "gone", "changed")}
    await first.upsert([*texts.values(), a_point(neighbour, "gone tide", "gone")])
    second = await ServerIndex.open(client, OTHERS[1][0], rebuild=True)
    await second.delete_memories(tenant, ["gone"])
    await second.upsert([a_point(tenant, "kept tide", "kept"), a_point(tenant, "new tide", "changed", version=2)])
    assert [row async for row in first.stored(tenant)] == [(tenant, "kept", 1)]
    assert [row async for row in first.stored(neighbour)] == [(neighbour, "gone", 1)]
    await client.delete_collection(name_of(IDENTITY))
    await second.delete_memories(tenant, ["kept"])
    assert [row async for row in second.stored(tenant)] == [(tenant, "changed", 2)], (
        "gone with another replica's help"
    )


async def test_a_collection_that_names_no_embedder_is_not_ours(client: AsyncQdrantClient) -> None:
    size = models.VectorParams(size=32, distance=models.Distance.COSINE)
    await client.create_collection(f"{PREFIX}test", vectors_config=size)
    with pytest.raises(Misconfigured, match="names no embedder"):
        await ServerIndex.open(client, IDENTITY)


async def test_our_fusion_is_the_servers_own(client: AsyncQdrantClient) -> None:
    index, tenant = await ServerIndex.open(client, IDENTITY), a_tenant()
    words = ["tide", "buoy", "lock", "barge", "tug", "quay"]
    texts = [f"{words[n % 6]} {words[n % 5]} at " + " ".join(f"pier{i}" for i in range(n)) for n in range(60)]
    await index.upsert([a_point(tenant, text, text) for text in texts])
    for word in words:
        ours = await index.search(asking(f"{word} tide", limit=15), a_filter(tenant))
        theirs = await _fused(client, f"{word} tide", visible(a_filter(tenant)), 15)
        assert {c.memory_id: pytest.approx(c.fused) for c in ours.found} == theirs
        assert ours.found[0].memory_id == next(iter(theirs))


async def test_a_server_that_is_away_is_unavailable_and_its_key_untold() -> None:
    with pytest.warns(UserWarning, match="insecure"):
        client = connect("http://127.0.0.1:1", api_key="key-that-nobody-sees")
    with pytest.raises(Unavailable) as away:
        await ServerIndex.open(client, IDENTITY)
    assert "key-that-nobody-sees" not in str(away.value)
    await client.close()


async def test_a_collection_that_is_gone_fails_the_check(client: AsyncQdrantClient) -> None:
    index = await ServerIndex.open(client, IDENTITY)
    await index.check()
    await client.delete_collection(name_of(IDENTITY))
    with pytest.raises(Unavailable):
        await index.check()


async def _fused(client: AsyncQdrantClient, text: str, restriction: Restriction, limit: int) -> dict[str, float]:
    """The server's fusion over our two legs, each as deep as ours; scores by memory, best first."""
    legs = [
        dense_leg(vector_of(text), restriction, limit),
        lexical_leg(Bm25().query(text), restriction, limit),
    ]
    answer = await client.query_points(
        name_of(IDENTITY),
        prefetch=[
            models.Prefetch(query=leg.query, using=leg.using, filter=leg.filter, params=leg.params, limit=limit)
            for leg in legs
        ],
        query=models.RrfQuery(rrf=models.Rrf(k=2, weights=[3.0, 1.0])),
        query_filter=filter_of(restriction),
        limit=2 * limit,
        with_payload=[Field.MEMORY.value],
    )
    return {(hit.payload or {})[Field.MEMORY.value]: hit.score for hit in answer.points}
