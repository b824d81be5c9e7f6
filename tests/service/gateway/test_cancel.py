"""A cancel reaches a run in whatever state it is, within two seconds, and for ever."""

from time import monotonic

import asyncpg
import httpx
import pytest

from caisson.common import subjects
from caisson.common.envelope import open_envelope
from caisson.common.errors import LateResult
from caisson.common.leases import Verdict
from caisson.common.outcome import Cancelled
from tests.support.eventually import eventually
from tests.support.product import cancel, submit, the_run
from tests.support.worker import Worker

WITHIN_S = 2.0


async def finished_events(ledger: asyncpg.Pool, run_id: str) -> int:
    count = "SELECT count(*) FROM ledger.events WHERE run_id = $1 AND type = 'run.finished'"
    return int(await ledger.fetchval(count, run_id))


async def test_a_queued_run_is_cancelled_at_once_and_never_granted(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product, "one", "two")
    run = await cancel(product, run_id)
    assert (run["status"], run["error"]["code"]) == ("cancelled", "cancelled")
    assert [step["status"] for step in run["steps"]] == ["cancelled", "cancelled"]
    assert await worker.claim() == []
    assert await cancel(product, run_id) == run, "repeating it changes nothing, not even the version"
    assert await finished_events(ledger, run_id) == 1


async def test_a_worker_that_obeys_ends_the_run_with_what_had_been_done(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    wakes: list[tuple[str, bytes]] = []
    listening = await worker.bus.listen(subjects.CANCEL_WAKE_PATTERN, lambda *wake: wakes.append(wake))
    await worker.bus.connection.flush()
    run_id = await submit(product, "one", "two")
    grant = await worker.take()
    await worker.start(grant)
    await worker.finish(grant, stdout="1\n", start_next=True)
    run = await cancel(product, run_id)
    assert run["status"] == "running"
    await eventually(lambda: wakes)
    assert open_envelope(*wakes[0])[1].run_id == run_id, "the worker is woken"
    assert await worker.renew(grant) == {run_id: Verdict.CANCEL}, "and told again with each heartbeat"
    assert await worker.finish(grant, 1, outcome=Cancelled(), finish_run=True) is Verdict.CANCEL
    run = await the_run(product, run_id)
    assert (run["status"], run["error"]["code"]) == ("cancelled", "cancelled")
    assert [step["status"] for step in run["steps"]] == ["succeeded", "cancelled"]
    assert run["steps"][0]["stdout"]["text"] == "1\n"
    assert await cancel(product, run_id) == run
    await listening.unsubscribe()


async def test_a_silent_worker_does_not_hold_up_a_cancel_and_its_late_result_changes_nothing(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product, "one", "two")
    grant = await worker.take()
    await worker.start(grant)
    began = monotonic()
    await cancel(product, run_id)
    await cancel(product, run_id)
    run = await the_run(product, run_id, wait_s=5)
    assert monotonic() - began < WITHIN_S
    assert (run["status"], run["error"]["code"]) == ("cancelled", "cancelled")
    assert [step["outcome"]["kind"] for step in run["steps"]] == ["cancelled", "cancelled"]

    for _ in range(2):
        with pytest.raises(LateResult):
            await worker.finish(grant, stdout="too late", finish_run=True)
    assert await the_run(product, run_id) == run
    kept = await ledger.fetch("SELECT step_id, fence, outcome FROM ledger.late_results WHERE run_id = $1", run_id)
    assert [tuple(row) for row in kept] == [(grant.steps[0].step_id, 1, {"kind": "exited", "exit_code": 0})]
    assert await finished_events(ledger, run_id) == 1
    assert (await product.get("/v1/security-events", params={"run_id": run_id})).json()["items"] == []


async def test_a_cancel_that_was_accepted_outlives_the_worker_and_its_release(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    released, orphaned = [await submit(product) for _ in range(2)]
    grants = {grant.run_id: grant for grant in await worker.claim(2)}
    for run_id in (released, orphaned):
        assert (await cancel(product, run_id))["status"] == "running"
    await worker.release(grants[released])
    await ledger.execute("UPDATE ledger.runs SET lease_expires_at = now() WHERE run_id = $1", orphaned)
    for run_id in (released, orphaned):
        assert (await the_run(product, run_id, wait_s=2))["status"] == "cancelled"
    assert await worker.claim() == [], "nothing of it starts again"


async def test_a_finished_run_stays_as_it_ended(product: httpx.AsyncClient, worker: Worker) -> None:
    run_id = await submit(product)
    await worker.work(await worker.take())
    before = await the_run(product, run_id)
    assert before["status"] == "succeeded"
    assert await cancel(product, run_id) == before


async def test_a_cancel_between_a_result_and_its_report_is_told_with_the_answer(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    run_id = await submit(product, "one", "two")
    grant = await worker.take()
    await worker.start(grant)
    await cancel(product, run_id)
    assert await worker.finish(grant, start_next=True) is Verdict.CANCEL
    await worker.finish_run(grant)
    run = await the_run(product, run_id)
    assert (run["status"], run["steps"][0]["status"]) == ("cancelled", "succeeded")
