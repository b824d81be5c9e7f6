"""Another embedder takes over: nothing is lost when that is interrupted, and no search looks whole before it is."""

import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from caisson.common import subjects
from caisson.common.errors import Misconfigured, Unavailable
from caisson.common.health import Progress
from caisson.common.ids import TenantId
from caisson.common.memories import Caller
from caisson.common.postgres import Pool, connect_pool, load_queries, migrate
from caisson.common.recalls import Recalled, Search
from caisson.memory.adapters.postgres.embeddings import PostgresEmbeddings
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.memory.domain.embedding import refuse_other_embedder, take_over
from caisson.memory.domain.indexing import EmbedderIdentity
from caisson.memory.loops.index_state import IndexStateWatch, Watched
from caisson.stack.nats import EmbeddedNats
from tests.support.eventually import eventually
from tests.support.gateway import create_database
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder, open_index
from tests.support.memory_process import Ground, asking


class Kept:
    """Counts how often what other embedders wrote was dropped; not empty itself."""

    def __init__(self) -> None:
        self.dropped = 0

    async def count(self) -> int:
        return 1

    async def drop_older(self) -> None:
        self.dropped += 1


@pytest.fixture
async def pool(postgres_url: str) -> AsyncIterator[Pool]:
    pool = await connect_pool(await create_database(postgres_url), application="tests")
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    yield pool
    await pool.close()


@pytest.fixture
def embeddings(pool: Pool) -> PostgresEmbeddings:
    return PostgresEmbeddings(pool, load_queries(QUERIES_FILE))


@pytest.fixture
async def indexes(tmp_path: Path) -> AsyncIterator[tuple[Outage, Outage]]:
    embedder = WordEmbedder()
    async with open_index(tmp_path / "one", embedder) as one, open_index(tmp_path / "two", embedder) as two:
        yield one, two


def other_embedder() -> WordEmbedder:
    other = WordEmbedder()
    other.identity = EmbedderIdentity(name="other words", dimensions=other.identity.dimensions, digest="o" * 64)
    return other


async def opened(embeddings: PostgresEmbeddings, pool: Pool, index: Outage, embedder: WordEmbedder) -> Desk:
    """A replica as it starts."""
    readiness = await take_over(embeddings, embedder.identity, is_empty=await index.count() == 0)
    return Desk(pool=pool, index=index, embedder=embedder, clock=Turntable(), readiness=readiness, tenant="acme")  # type: ignore[arg-type]


def watch(embeddings: PostgresEmbeddings, desk: Desk, index: Watched | None = None) -> IndexStateWatch:
    identity, progress = desk.embedder.identity, Progress("index state", limit_s=60)
    return IndexStateWatch(
        embeddings, identity, index or Kept(), readiness=desk.readiness, poll_s=1, progress=progress
    )


async def test_another_embedder_is_refused_with_both_named(embeddings: PostgresEmbeddings) -> None:
    first, second = WordEmbedder().identity, other_embedder().identity
    await take_over(embeddings, first, is_empty=True)
    for other in (second, replace(first, dimensions=64), replace(first, digest="x")):
        with pytest.raises(Misconfigured, match=rf"words \(128 dimensions.*{other.name} \({other.dimensions}"):
            await refuse_other_embedder(embeddings, other)
    await refuse_other_embedder(embeddings, first)


async def test_an_index_that_comes_back_empty_is_filled_while_searches_are_degraded(
    pool: Pool, embeddings: PostgresEmbeddings, indexes: tuple[Outage, Outage]
) -> None:
    desk = await opened(embeddings, pool, indexes[0], WordEmbedder())
    await desk.remember("the heron was seen at dusk")
    watching = watch(embeddings, desk, desk.index)
    await watching.look()
    assert desk.readiness.state.is_whole
    await desk.index.delete_memories(TenantId("acme"), list(await desk.indexed()))

    await watching.look()
    told = await desk.recalled("heron at dusk")
    assert told.diagnostics.degraded == ["vector: memories are being embedded again, 1 are left"]
    assert [hit.memory.text for hit in told.hits] == ["the heron was seen at dusk"]

    await desk.indexer.relay(10)
    await watching.look()
    told = await desk.recalled("heron at dusk")
    assert (told.diagnostics.backend, told.diagnostics.degraded, len(told.hits)) == ("vector", [], 1)


async def test_searches_are_degraded_until_everything_is_embedded_again_and_the_old_is_kept_till_then(
    pool: Pool, embeddings: PostgresEmbeddings, indexes: tuple[Outage, Outage]
) -> None:
    old = await opened(embeddings, pool, indexes[0], WordEmbedder())
    assert old.readiness.state.is_whole, "an empty store has nothing to embed"
    await old.remember(*(f"locker {n} is free" for n in range(70)))
    await old.remember("the heron was seen at dusk")

    new = await opened(embeddings, pool, indexes[1], other_embedder())
    assert (new.readiness.state.is_whole, new.readiness.state.left) == (False, 71)
    told = await new.recalled("heron at dusk")
    assert [hit.memory.text for hit in told.hits] == ["the heron was seen at dusk"], "the store finds it"
    assert told.diagnostics.backend == "sql_bm25"
    assert told.diagnostics.degraded == ["vector: memories are being embedded again, 71 are left"]
    with pytest.raises(Unavailable, match="embedded again"):
        await new.recalled("heron at dusk", on_degraded="fail")
    assert (await new.outbox.backlog()).oldest_s == 0, "the relay is not behind with what is new"

    older, fresh = Kept(), await new.store("the owl was seen at dawn")
    assert fresh in await new.indexed(), "what is new does not wait for what is old"
    assert await new.indexer.relay(64) == 64
    looking = watch(embeddings, new, older)
    await looking.look()
    assert (new.readiness.state.left, older.dropped) == (7, 0)

    again = await opened(embeddings, pool, indexes[1], other_embedder())
    assert again.readiness.state.left == 7, "a start in the middle goes on, with the flag and without it"
    assert await again.indexer.relay(64) == 7
    await looking.look()
    await looking.look()
    assert older.dropped == 1
    told = await new.recalled("heron at dusk")
    assert (told.diagnostics.backend, told.diagnostics.degraded) == ("vector", [])
    assert len(await new.indexed()) == 72


async def test_a_crash_while_the_work_is_written_down_loses_none_of_it(
    pool: Pool, embeddings: PostgresEmbeddings, indexes: tuple[Outage, Outage]
) -> None:
    old = await opened(embeddings, pool, indexes[0], WordEmbedder())
    await old.store("Likes tea")
    identity = other_embedder().identity
    await embeddings.embed_with(identity, from_scratch=False)
    assert not await embeddings.finish(identity.digest), "nothing waits yet, and nothing is whole"
    new = await opened(embeddings, pool, indexes[1], other_embedder())
    assert new.readiness.state.left == 1


async def test_a_lost_index_is_not_told_as_a_whole_one(
    pool: Pool, embeddings: PostgresEmbeddings, indexes: tuple[Outage, Outage]
) -> None:
    first = await opened(embeddings, pool, indexes[0], WordEmbedder())
    await first.store("Likes tea")
    restarted = await opened(embeddings, pool, indexes[1], WordEmbedder())
    told = await restarted.recalled("tea")
    assert ([hit.memory.text for hit in told.hits], told.diagnostics.backend) == (["Likes tea"], "sql_bm25")
    assert await restarted.indexer.relay(64) == 1
    await watch(embeddings, restarted).look()
    assert (await restarted.recalled("tea")).diagnostics.backend == "vector"


async def test_one_memory_that_no_embedder_takes_leaves_the_index_whole_for_the_others(
    pool: Pool, embeddings: PostgresEmbeddings, indexes: tuple[Outage, Outage]
) -> None:
    old = await opened(embeddings, pool, indexes[0], WordEmbedder())
    await old.remember("Likes tea", "Likes poison")
    new = await opened(embeddings, pool, indexes[1], other_embedder())
    await pool.execute(
        "UPDATE memory.index_outbox SET attempts = 8, not_before = now() + interval '5 minutes'"
        " WHERE memory_id = (SELECT memory_id FROM memory.memories WHERE text = 'Likes poison')"
    )
    await new.indexer.relay(64)
    await watch(embeddings, new).look()
    assert new.readiness.state.is_whole
    assert (await new.outbox.backlog()).failing == 1


async def test_a_replica_with_the_older_embedder_writes_nothing_and_says_what_it_cannot_find(
    pool: Pool, embeddings: PostgresEmbeddings, indexes: tuple[Outage, Outage]
) -> None:
    old = await opened(embeddings, pool, indexes[0], WordEmbedder())
    doomed, held = await old.store("Likes tea"), await old.store("Likes coffee")
    await old.inventory.enqueue(old.tenant, {held: 1})
    [due] = await old.outbox.lease_these(old.tenant, [held])
    new = await opened(embeddings, pool, indexes[1], other_embedder())
    await watch(embeddings, old).look()
    with pytest.raises(Unavailable, match="another embedder"):
        old.readiness.check_current()
    assert "another embedder" in (await old.recalled("coffee")).diagnostics.degraded[0]

    await old.store("Likes water")
    assert await old.indexer.relay(64) == 0
    await old.indexer._work([due])
    receipt = await old.delete(doomed)
    assert not receipt.complete, "the newer index may hold it yet"
    await pool.execute("UPDATE memory.index_outbox SET leased_until = NULL")
    while await new.indexer.relay(64):
        pass
    assert (await new.receipt(receipt.id)).complete
    await watch(embeddings, new).look()
    assert sorted(await new.search("who likes what")) == ["Likes coffee", "Likes water"]
    made = await pool.fetch("SELECT DISTINCT embedder FROM memory.memories")
    assert [row["embedder"] for row in made] == ["o" * 64]


async def test_a_service_killed_while_it_embeds_again_ends_that_after_its_restart(
    postgres_url: str, nats: EmbeddedNats, tmp_path: Path
) -> None:
    ground = Ground(folder=tmp_path, database_url=await create_database(postgres_url), nats=nats)
    caller = Caller(tenant_id="acme", user_id="ana", scopes=[])
    async with asking(nats) as bus:
        service = ground.service("first", MEMORY_EMBEDDER="wordllama")
        await service.start()
        await bus.remember(caller, *(f"The deploy port of service {n} is {8000 + n}" for n in range(100)))
        await service.stop()
        taking_over = ground.service("second", "--reembed")
        await taking_over.start()
        assert taking_over.process is not None
        taking_over.process.send_signal(signal.SIGKILL)
        await taking_over.process.wait()
        after = ground.service("third")
        await after.start()

        async def is_whole() -> bool:
            asked = Search(caller=caller, query="which port is for deploys of service 7?")
            told = await bus.call(subjects.MEMORY_SEARCH, asked, Recalled)
            assert told.hits, "degraded or not, something is told"
            return told.diagnostics.backend == "vector" and not told.diagnostics.degraded

        await eventually(is_whole, within_s=20)
        async with httpx.AsyncClient(base_url=after.addresses["admin"], trust_env=False) as client:
            assert "caisson_memory_reembedding_left 0.0" in (await client.get("/metrics")).text
        await after.stop()
