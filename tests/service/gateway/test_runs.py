"""A run from its acceptance to its end, as the product sees it."""

import asyncio
from time import monotonic

import httpx

from caisson.common.outcome import Exited
from tests.support.product import submit, the_run
from tests.support.worker import Worker


async def test_a_run_goes_through(product: httpx.AsyncClient, tenant: str, worker: Worker) -> None:
    steps = [{"bash": {"command": "echo 42"}}, {"bash": {"command": "exit 3", "timeout_s": 5}}]
    plan = {"steps": steps, "env": {"REGION": "eu"}, "datasets": ["ds_1"], "on_failure": "continue"}
    accepted = await product.post("/v1/runs", json={**plan, "metadata": {"ticket": "T-17 😀"}})
    run = accepted.json()
    assert (accepted.status_code, accepted.headers["location"]) == (202, f"/v1/runs/{run['id']}")
    assert (run["status"], run["tenant_id"], run["user_id"], run["attempt"]) == ("queued", tenant, "u-1", 1)
    assert [step["status"] for step in run["steps"]] == ["pending", "pending"]
    assert run == await the_run(product, run["id"]), "the answer is what a reader sees"

    grant = await worker.take()
    assert (grant.run_id, grant.tenant_id, grant.user_id, grant.fence, grant.attempt) == (
        run["id"],
        tenant,
        "u-1",
        1,
        1,
    )
    assert [(step.command, step.timeout_s) for step in grant.steps] == [("echo 42", 60), ("exit 3", 5)]
    assert (grant.env, grant.datasets, grant.on_failure) == ({"REGION": "eu"}, ["ds_1"], "continue")
    assert 590 < grant.remaining_s <= 600
    await worker.start(grant)
    assert (await the_run(product, run["id"]))["status"] == "running"
    await worker.finish(grant, stdout="42\n", start_next=True)
    await worker.finish(grant, 1, outcome=Exited(exit_code=3), finish_run=True)

    done = await the_run(product, run["id"])
    assert (done["status"], done["metadata"]) == ("failed", {"ticket": "T-17 😀"})
    assert done["error"]["code"] == "step_failed"
    assert done["error"]["step_id"] == grant.steps[1].step_id
    first, second = done["steps"]
    assert first["stdout"] == {"text": "42\n", "bytes": 3, "truncated": False, "lossy": False, "gap_at": None}
    assert (first["status"], first["error"], first["duration_ms"]) == ("succeeded", None, 1.5)
    assert (second["status"], second["outcome"]["exit_code"]) == ("failed", 3)
    assert done["created_at"] <= done["started_at"] <= second["started_at"] <= done["finished_at"]
    assert done["created_at"].endswith("Z")


async def test_a_run_whose_worker_stops_early_is_no_success(product: httpx.AsyncClient, worker: Worker) -> None:
    runs = [await submit(product, "true", "true") for _ in range(2)]
    early, earlier = await worker.claim(2)
    await worker.start(early)
    await worker.finish(early, finish_run=True)
    await worker.finish_run(earlier)
    for run_id in runs:
        run = await the_run(product, run_id)
        assert (run["status"], run["error"]["code"]) == ("failed", "step_failed")
        assert run["steps"][1]["status"] == "cancelled"


async def test_waiting_for_a_run_ends_with_the_run_or_with_the_time(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product)
    began = monotonic()
    assert (await the_run(product, run_id, wait_s=0.2))["status"] == "queued"
    assert 0.2 <= monotonic() - began < 1
    waiting = asyncio.create_task(the_run(product, run_id, wait_s=30))
    grant = await worker.take()
    await worker.start(grant)
    assert not waiting.done()
    await worker.finish(grant, finish_run=True)
    assert (await asyncio.wait_for(waiting, 2))["status"] == "succeeded"


async def test_exec_waits_and_answers_with_the_step_and_its_run(product: httpx.AsyncClient, worker: Worker) -> None:
    body = {"command": "echo hi; exit 4", "timeout_s": 9}
    executing = asyncio.create_task(product.post("/v1/exec", json=body))
    grant = await worker.take()
    assert (grant.steps[0].command, grant.steps[0].timeout_s) == ("echo hi; exit 4", 9)
    await worker.start(grant)
    await worker.finish(grant, outcome=Exited(exit_code=4), stdout="hi\n", finish_run=True)
    answer = (await executing).json()
    assert (answer["run_id"], answer["id"], answer["run_status"]) == (grant.run_id, grant.steps[0].step_id, "failed")
    assert (answer["outcome"]["exit_code"], answer["stdout"]["text"]) == (4, "hi\n")
    assert answer["error"] == {"code": "exited", "detail": "the command exited with 4", "step_id": None}


async def test_a_list_is_stable_while_runs_come_in(product: httpx.AsyncClient) -> None:
    runs = [await submit(product) for _ in range(7)]
    first = (await product.get("/v1/runs", params={"limit": 3})).json()
    late = await submit(product)
    seen = [run["id"] for run in first["items"]]
    cursor = first["next_cursor"]
    while cursor:
        page = (await product.get("/v1/runs", params={"limit": 3, "cursor": cursor})).json()
        seen += [run["id"] for run in page["items"]]
        cursor = page["next_cursor"]
    assert seen == runs[::-1], "newest first, each once; what came in meanwhile is on a new first page"
    assert (await product.get("/v1/runs", params={"limit": 1})).json()["items"][0]["id"] == late


async def test_a_list_is_filtered_by_session_and_status_and_holds_no_output(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    session = (await product.post("/v1/sessions", json={"metadata": {"topic": "bills"}})).json()
    inside = await submit(product, session_id=session["id"])
    outside = await submit(product)
    for grant in await worker.claim(2):
        if grant.run_id == inside:
            assert grant.session_id == session["id"]
            await worker.work(grant, stdout="42\n")
    by_session = (await product.get("/v1/runs", params={"session_id": session["id"]})).json()["items"]
    assert [run["id"] for run in by_session] == [inside]
    assert by_session[0]["steps"][0]["stdout"] is None
    assert by_session[0]["steps"][0]["status"] == "succeeded"
    running = (await product.get("/v1/runs", params={"status": "running"})).json()["items"]
    assert [run["id"] for run in running] == [outside]
    assert (await product.get("/v1/runs", params={"status": "lost"})).status_code == 422
    assert (await product.get("/v1/sessions")).json()["items"] == [session]


async def test_another_tenants_objects_are_as_if_they_were_not(
    product: httpx.AsyncClient, worker: Worker, tenant: str
) -> None:
    run_id = await submit(product)
    session_id = (await product.post("/v1/sessions")).json()["id"]
    stranger = {"Caisson-Tenant": f"{tenant}x"}
    for path in (run_id, f"{run_id}/events", f"{run_id}/cancel"):
        method = "POST" if path.endswith("cancel") else "GET"
        theirs = await product.request(method, f"/v1/runs/{path}", headers=stranger)
        nobodys = await product.request(method, f"/v1/runs/{path.replace(run_id, 'run_0')}", headers=stranger)
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)
    assert (await product.get(f"/v1/sessions/{session_id}", headers=stranger)).status_code == 404
    into = await product.post(
        "/v1/runs", json={"steps": [{"bash": {"command": "true"}}], "session_id": session_id}, headers=stranger
    )
    assert (into.status_code, into.json()["code"]) == (404, "not_found")
    assert (await product.get("/v1/runs", headers=stranger)).json()["items"] == []
    assert (await the_run(product, run_id))["status"] == "queued", "a stranger's cancel changed nothing"
