"""A session is deleted while it works: its box dies, and nothing that was said or done in it is found anywhere."""

from uuid import uuid4

import psutil
import pytest

from caisson.client.errors import NotFound
from tests.support.eventually import eventually
from tests.support.planes import Plane, text
from tests.support.traces import analyze, as_superuser, files_with, tables_with

STATISTICS = "pg_catalog.pg_statistic"


async def test_nothing_of_a_deleted_session_is_left_but_that_it_was_deleted(plane: Plane) -> None:
    canary = f"canary{uuid4().hex}"
    client = plane.client_of(f"acme {uuid4().hex[:6]}", "ana")
    session = await client.create_session(metadata={"topic": canary})
    said = {"kind": "run", "session_id": session.id}
    noted = await client.remember(f"The release is called {canary}", layer="session", provenance=said)
    kept = await client.remember("Ana likes tea")
    done = await client.exec(f"echo {canary}", session_id=session.id)
    assert text(done) == f"{canary}\n"
    run = await client.create_run(commands=[f"echo {canary}; exec -a {canary} sleep 600"], session_id=session.id)
    async for event in client.events(run.id):
        if event.type == "step.output":
            break
    await eventually(lambda: _processes(canary))
    recalled = await client.recall("what is the release called?", session_id=session.id)
    assert [hit.memory.id for hit in recalled.hits] == [noted.id]

    database = as_superuser((plane.stack.folder.secrets("memory") / "memory_database_url").read_text())
    await analyze(database)
    assert {"ledger.steps", "memory.memories"} <= set(await tables_with(canary, database))

    assert await client.delete_session(session.id) is not None

    async def is_gone() -> bool:
        return await client.delete_session(session.id) is None

    await eventually(is_gone, within_s=20)
    await eventually(lambda: not _processes(canary))
    for unknown in (client.get_session(session.id), client.get_run(run.id), client.get_run(done.run_id)):
        with pytest.raises(NotFound):
            await unknown
    await eventually(lambda: _is_nowhere(canary, database), within_s=20)
    for run_id in (run.id, done.run_id):
        assert set(await tables_with(run_id, database)) <= {STATISTICS}, "ids may be sampled until the next ANALYZE"
    assert files_with(canary, plane.stack.folder.path, but=plane.stack.folder.postgres / "data") == []
    assert (await client.recall("what is the release called?", session_id=session.id)).hits == []
    assert [memory.id async for memory in client.list_memories()] == [kept.id]
    index = await client.reconcile_memories()
    assert (index.checked, index.missing, index.orphaned, index.stale) == (1, 0, 0, 0)
    with pytest.raises(NotFound):
        await client.get_memory(noted.id or "")
    late = await client.remember(f"The release is still called {canary}", layer="session", provenance=said)
    assert (late.status, (late.reason or "").partition(":")[0]) == ("rejected", "session ended")


def _processes(name: str) -> list[int]:
    running = psutil.process_iter(["cmdline"])
    return [process.pid for process in running if (process.info["cmdline"] or [""])[0] == name]


async def _is_nowhere(word: str, database: str) -> bool:
    assert await tables_with(word, database) == []
    return True
