"""What the service does to memories by itself, and what a correction does beside what it names: nothing is lost."""

from datetime import timedelta
from typing import Any

from tests.support.memory_desk import Desk
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search


async def test_fifty_episodes_are_kept_and_a_second_run_changes_nothing(desk: Desk) -> None:
    """M22. Consolidating 50 distinct episodes keeps the originals, cold; none is deleted; twice is no change."""
    ids = [await desk.episode(f"deployed service {n} to production", run=f"run_{n}") for n in range(50)]
    shown = await desk.consolidate(dry_run=True)
    assert (shown.applied, shown.created) == (False, [])
    assert {id_ for group in shown.groups for id_ in group["sources"]} == set(ids)
    done = await desk.consolidate()
    assert [group["sources"] for group in done.groups] == [group["sources"] for group in shown.groups]
    everything = "SELECT * FROM memory.memories WHERE tenant_id = $1 ORDER BY memory_id"
    rows = await desk.rows(everything)
    assert {row["memory_id"]: row["status"] for row in rows} == {
        **dict.fromkeys(ids, "cold"),
        **dict.fromkeys(done.created, "active"),
    }
    told = "\n".join([(await desk.get(id_)).text for id_ in done.created])
    assert all(f"deployed service {n} to production" in told for n in range(50)), "nothing of them is lost"
    assert {(await desk.get(id_)).text for id_ in ids} == {f"deployed service {n} to production" for n in range(50)}
    again = await desk.consolidate()
    assert (again.groups, again.created) == ([], [])
    assert await desk.rows(everything) == rows
    tombstones = await desk.rows("SELECT 1 FROM memory.tombstones WHERE tenant_id = $1")
    assert tombstones == []


async def test_a_patch_changes_what_it_names_and_nothing_else(plane: MemoryPlane) -> None:
    """M23. Created with tags, importance and expiry, then the text alone patched: the others stay as they were."""
    expires = "2040-05-01T10:00:00.000Z"
    fields = {"tags": ["home", "vip"], "importance": 0.9, "confidence": 0.8, "metadata": {"k": [1, {"deep": "er"}]}}
    async with plane.asker(new_tenant()) as ana:
        id_ = await remember(ana, "Likes tea", expires_at=expires, subject="Ana", external_id="tea", **fields)
        before = (await ana.get(f"/v1/memories/{id_}")).json()
        assert before["expires_at"] == expires
        assert {name: before[name] for name in fields} == fields
        patched = (await ana.patch(f"/v1/memories/{id_}", json={"text": "Likes green tea"})).json()
        changed = {"text": "Likes green tea", "version": 2, "updated_at": patched["updated_at"]}
        assert patched == before | changed == (await ana.get(f"/v1/memories/{id_}")).json()
        assert patched["updated_at"] > before["updated_at"]
        assert patched["created_at"] == before["created_at"]
        assert await search(ana, "which tea does she like") == ["Likes green tea"]
        for name in ("tags", "importance", "status", "metadata", "text"):
            refused = await ana.patch(f"/v1/memories/{id_}", json={name: None, "confidence": 0.1})
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, name), "null is no silence"
        assert patched == (await ana.get(f"/v1/memories/{id_}")).json()


async def test_each_field_is_patched_alone(desk: Desk) -> None:
    """M23. Whichever single field is patched, the row's other fields keep their values, and empty ones are values."""
    expires = desk.clock() + timedelta(days=9)
    id_ = await desk.store(
        "Likes tea", tags=["a"], importance=0.9, confidence=0.8, expires_at=expires, metadata={"k": 1}
    )
    later = expires + timedelta(days=1)
    patches: list[dict[str, Any]] = [
        {"text": "Likes green tea"},
        {"importance": 0.0},
        {"confidence": 0.0},
        {"tags": []},
        {"metadata": {}},
        {"expires_at": later},
        {"valid_to": later},
    ]
    for patch in patches:
        before = await desk.get(id_)
        after = await desk.correct(id_, **patch)
        changed = patch | {"version": before.version + 1, "updated_at": after.updated_at}
        assert after.model_dump() == before.model_dump() | changed == (await desk.get(id_)).model_dump(), patch
        assert (after.updated_at > before.updated_at, after.created_at) == (True, before.created_at)
