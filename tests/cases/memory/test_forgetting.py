"""What is forgotten is gone from everywhere, stays gone, and takes nobody else's with it."""

from pathlib import Path
from typing import Any

import pytest

from caisson.common.errors import NotFound
from caisson.common.memories import OfUser, Provenance
from caisson.common.memory_upkeep import Distil
from caisson.common.postgres import Pool
from tests.support.memory_desk import Desk, Turntable, WordEmbedder, open_index
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, search
from tests.support.tables import tables_with

CANARY = "canary-7391"

LEFT = """
SELECT (SELECT count(*) FROM memory.memories WHERE tenant_id = $1 AND memory_id = $2) AS memories,
       (SELECT count(*) FROM memory.lexemes WHERE tenant_id = $1 AND memory_id = $2) AS lexemes,
       (SELECT count(*) FROM memory.history WHERE tenant_id = $1 AND memory_id = $2) AS history,
       (SELECT count(*) FROM memory.sources WHERE tenant_id = $1 AND $2 IN (memory_id, source_id)) AS links,
       (SELECT count(*) FROM memory.memories WHERE tenant_id = $1 AND superseded_by = $2) AS successions,
       (SELECT count(*) FROM memory.retrievals WHERE tenant_id = $1 AND $2 = ANY (injected)) AS recalls
"""


@LOCAL_MODE_WARNINGS
async def test_erasing_a_user_leaves_another_ones_memories_whole(each_desk: Desk) -> None:
    """M14. A and B have three rows each; after erasing A, B has three in the store, the index and a search."""
    desk = each_desk
    bo = desk.caller("bo")
    for n in range(3):
        await desk.store(f"the shelf {n} is Ana's")
    kept = {await desk.store(f"the shelf {n} is Bo's", caller=bo) for n in range(3)}
    receipt = await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana"))
    assert receipt.count == 3
    rows = await desk.rows("SELECT memory_id, user_id FROM memory.memories WHERE tenant_id = $1")
    assert {row["memory_id"] for row in rows} == kept
    if not desk.index.away:
        assert await desk.indexed() == kept
    assert {hit.memory.id for hit in (await desk.recalled("which shelf", caller=bo)).hits} == kept
    assert await desk.search("which shelf") == []


async def test_one_call_erases_257_memories(desk: Desk) -> None:
    """M15. All of a user's 257 go in one call: no row and no point is left, and the receipt counts 257."""
    bo = desk.caller("bo")
    for start in range(0, 257, 100):
        await desk.remember(*(f"Ana's note number {n}" for n in range(start, min(start + 100, 257))))
    kept = [await desk.store(f"Bo's note number {n}", caller=bo) for n in range(3)]
    receipt = await desk.forgetting.erase_user(OfUser(caller=desk.caller(), user_id="ana"))
    assert (receipt.count, receipt.vectors, receipt.complete, receipt.resume) == (257, 257, True, None)
    rows = await desk.rows("SELECT memory_id FROM memory.memories WHERE tenant_id = $1")
    assert {row["memory_id"] for row in rows} == set(kept) == await desk.indexed()
    assert len(await desk.search("note number", caller=bo)) == 3
    for table in ("history", "sources", "lexemes", "index_outbox", "events"):
        sql = f"SELECT 1 FROM memory.{table} WHERE tenant_id = $1 AND {table}::text LIKE '%Ana%'"
        assert await desk.rows(sql) == []


async def test_one_request_erases_257_memories(plane: MemoryPlane) -> None:
    """M15. The same over HTTP: one DELETE, and nothing is left to list, to find or to erase."""
    tenant = new_tenant()
    async with plane.asker(tenant) as ana, plane.asker(tenant, "bo") as bo:
        for asker, many in ((ana, 257), (bo, 3)):
            texts = [{"text": f"the note number {n} is on the wall"} for n in range(many)]
            for at in range(0, many, 100):
                made = await asker.post("/v1/memories", json={"memories": texts[at : at + 100]})
                assert {result["status"] for result in made.json()["results"]} == {"created"}
        receipt = (await ana.delete("/v1/users/ana/memories")).json()
        assert (receipt["count"], receipt["vectors"], receipt["complete"]) == (257, 257, True)
        assert (await ana.get("/v1/memories")).json()["items"] == []
        assert await search(ana, "which note is on the wall") == []
        assert (await ana.get("/v1/memories/usage")).json()["user_rows"] == 0
        assert len(await search(bo, "which note is on the wall")) == 3
        checked = (await bo.post("/v1/memories/reconcile")).json()
        assert (checked["checked"], checked["missing"], checked["orphaned"], checked["stale"]) == (3, 0, 0, 0)


@LOCAL_MODE_WARNINGS
async def test_a_deletion_leaves_no_point_term_or_link(each_desk: Desk) -> None:
    """M16. After a deletion every index counts no point of it, and nothing is linked to it any more."""
    desk = each_desk
    fact: dict[str, Any] = {"subject": "the pump", "attribute": "place"}
    old = await desk.store("the pump stands in the cellar", **fact)
    source = await desk.episode("the pump was moved to the attic")
    said = Provenance(kind="run", run_id="run_1", source=source)
    new = await desk.store("the pump stands in the attic", provenance=said, **fact)
    kept = await desk.store("the pump is loud")
    await desk.recalled("where does the pump stand")
    assert dict((await desk.rows(LEFT, new))[0])["links"] == 1
    for id_ in (new, old):
        receipt = await desk.delete(id_)
        assert id_ in receipt.deleted
        assert receipt.complete is not desk.index.away
        assert set(dict((await desk.rows(LEFT, id_))[0]).values()) == {0}
        for asked in (None, desk.clock()):
            with pytest.raises(NotFound):
                await desk.get(id_, as_of=asked)
    assert await desk.search("is the pump loud") == ["the pump is loud"]
    for query in ("the pump stands in the attic", "the pump stands in the cellar", "the pump was moved"):
        assert set(await desk.search(query)) <= {"the pump is loud"}
    if not desk.index.away:
        assert await desk.indexed() == {kept}
        assert await desk.rows("SELECT 1 FROM memory.index_outbox WHERE tenant_id = $1") == []


async def test_a_forgotten_episode_survives_in_no_summary_table_payload_cache_or_file(
    memory_pool: Pool, tmp_path: Path
) -> None:
    """M17. Of "canary-7391 likes cello" nothing is left after its deletion; the summary is made of the other three.

    The search is for the whole word: hashes and times may hold any four digits. Its parts are asked for as terms.
    """
    embedder = WordEmbedder()
    async with open_index(tmp_path, embedder) as index:
        desk = Desk(pool=memory_pool, index=index, embedder=embedder, clock=Turntable())
        canary = await desk.episode(f"{CANARY} likes cello", subject="music")
        others = [await desk.episode(text, subject="music") for text in ("likes viola", "likes oboe", "likes harp")]
        [summary] = (await desk.consolidate()).created
        await desk.distilling.distil(Distil(caller=desk.caller(), candidates=[f"{CANARY} likes cello"] * 3))
        for _ in range(3):
            told = await desk.recalled("who likes cello", session_id="ses_1")
            assert CANARY in told.hits[0].memory.text
        assert told.diagnostics.cached

        receipt = await desk.delete(canary)

        assert (receipt.deleted, receipt.rebuilt, receipt.complete) == ([canary], [summary], True)
        rebuilt = await desk.get(summary)
        assert rebuilt.text == "likes viola (ok)\nlikes oboe (ok)\nlikes harp (ok)"
        assert rebuilt.sources == sorted(others)
        assert CANARY not in str(await desk.recalled("who likes cello", session_id="ses_1"))
        assert await tables_with(memory_pool, CANARY) == []
        terms = "SELECT 1 FROM memory.lexemes WHERE tenant_id = $1 AND lexemes @@ '7391 | canary'::tsquery"
        assert await desk.rows(terms) == []
        await index.optimize()
        held = [path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
        assert held == []


async def test_a_forgotten_fact_is_not_learned_again_from_where_it_came(desk: Desk) -> None:
    """M19. After a deletion, consolidating again and reading the same source again do not bring the text back.

    A tombstone is of the text, in any case, spacing and punctuation: the same in other words is another memory.
    """
    texts = [f"the pump {fault} at night" for fault in ("leaks", "rattles", "stops", "hums")]
    episodes = [await desk.episode(text, subject="pump", external_id=text) for text in texts]
    [summary] = (await desk.consolidate()).created
    await desk.delete(episodes[0])
    assert (await desk.consolidate()).created == []
    for provenance in (Provenance(kind="import"), Provenance(kind="run", run_id="run_9"), Provenance(kind="tool")):
        for layer, outcome in (("semantic", None), ("episodic", "ok")):
            if layer == "episodic" and provenance.kind != "run":
                continue
            for text in (texts[0], f"  {texts[0].upper()}!\n"):
                [again] = await desk.remember(
                    text, provenance=provenance, layer=layer, outcome=outcome, external_id=texts[0]
                )
                assert again.status == "rejected", (provenance.kind, layer, text)
    assert texts[0] not in (await desk.get(summary)).text
    assert not [text for text in await desk.search("what does the pump do at night", k=50) if "leaks" in text]
    assert len((await desk.get(summary)).sources) == 3
    [again] = await desk.remember(texts[1], provenance=Provenance(kind="import"), confirmations=2)
    assert again.status == "created", "what was not forgotten is not refused"
    [on_purpose] = await desk.remember(texts[0], confirmations=1)
    assert on_purpose.status == "created", "a person may say it again on purpose"


async def test_what_only_a_summary_said_does_not_return_by_consolidating(desk: Desk) -> None:
    """M19. A summary that was deleted is not made again from what is left of its sources."""
    for n in range(3):
        await desk.episode(f"the gate {n} sticks", subject="gate")
    [summary] = (await desk.consolidate()).created
    await desk.delete(summary)
    for n in range(3):
        [again] = await desk.remember(
            f"the gate {n} sticks",
            subject="gate",
            layer="episodic",
            outcome="ok",
            provenance=Provenance(kind="run", run_id="run_7"),
        )
        assert again.status == "rejected"
    assert (await desk.consolidate()).created == []
    assert await desk.search("which gate sticks") == []
