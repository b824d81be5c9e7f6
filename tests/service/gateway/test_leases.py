"""A lease is the right to write: it is renewed, expires, is given back, and never written past."""

from typing import Any

import asyncpg
import httpx
import pytest

from caisson.common.errors import LateResult, LeaseLost
from caisson.common.leases import Grant, Verdict
from caisson.common.outcome import Exited
from tests.support.eventually import eventually
from tests.support.metrics import metric
from tests.support.product import submit, the_run
from tests.support.worker import Worker

EXPIRE = "UPDATE ledger.runs SET lease_expires_at = now() - interval '1 ms' WHERE run_id = $1 AND status = 'running'"
OVERDUE = "UPDATE ledger.runs SET deadline_at = now() - interval '1 h' WHERE run_id = $1"


async def lose_worker(ledger: asyncpg.Pool, product: httpx.AsyncClient, grant: Grant) -> dict[str, Any]:
    """Let a lease run out, and return the run once the reconciler has decided it."""
    assert await ledger.execute(EXPIRE, grant.run_id) == "UPDATE 1"

    async def decided() -> dict[str, Any]:
        run = await the_run(product, grant.run_id)
        assert run["status"] != "running"
        return run

    return await eventually(decided)


async def event_types(ledger: asyncpg.Pool, run_id: str) -> list[str]:
    rows = await ledger.fetch("SELECT seq, type FROM ledger.events WHERE run_id = $1 ORDER BY seq", run_id)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    return [row["type"] for row in rows]


async def test_a_run_whose_worker_is_gone_goes_to_another_and_the_old_one_writes_nothing_any_more(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, gateway: Any
) -> None:
    run_id = await submit(product, "one", "two")
    old = await worker.take()
    await worker.start(old)
    await worker.finish(old, start_next=True)
    run = await lose_worker(ledger, product, old)
    assert (run["status"], run["attempt"], run["error"]) == ("queued", 2, None)
    assert [step["status"] for step in run["steps"]] == ["succeeded", "pending"]

    successor = worker.named("successor")
    new = await successor.take()
    assert (new.run_id, new.fence, new.attempt, new.resumed_after, new.workspace_lost) == (run_id, 2, 2, 1, True)
    assert [step.command for step in new.steps] == ["two"], "it goes on after the last recorded step"
    assert new.request_id != old.request_id, "the old worker's context is not the new one's"
    await successor.start(new)
    stale_before = await metric(gateway, "caisson_security_stale_fence_total")
    for write in (worker.start(old, 1), worker.finish(old, 1), worker.finish_run(old), worker.release(old)):
        with pytest.raises(LeaseLost) as refused:
            await write
        assert not isinstance(refused.value, LateResult)
    assert await worker.renew(old) == {run_id: Verdict.LOST}
    assert await metric(gateway, "caisson_security_stale_fence_total") == stale_before + 4
    reported = (await product.get("/v1/security-events", params={"run_id": run_id})).json()["items"]
    assert [(event["kind"], event["detail"]) for event in reported] == [
        ("stale_fence", {"worker": worker.name, "fence": 1})
    ] * 4

    await successor.finish(new, finish_run=True)
    assert (await the_run(product, run_id))["status"] == "succeeded"
    types = await event_types(ledger, run_id)
    assert [name for name in types if not name.startswith("security.")] == [
        *("run.queued", "run.started", "step.started", "step.finished", "step.started"),
        *("run.requeued", "run.started", "step.started", "step.finished", "run.finished"),
    ]


async def test_a_zombie_is_refused_before_the_reconciler_has_seen_that_its_lease_is_over(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    await submit(product)
    grant = await worker.take()
    await worker.start(grant)
    await ledger.execute(EXPIRE, grant.run_id)
    with pytest.raises(LeaseLost):
        await worker.finish(grant, finish_run=True)
    assert await worker.renew(grant) == {grant.run_id: Verdict.LOST}, "an expired lease is not revived"


async def test_another_worker_cannot_write_with_a_stolen_fence(product: httpx.AsyncClient, worker: Worker) -> None:
    await submit(product)
    grant = await worker.take()
    thief = worker.named("thief")
    with pytest.raises(LeaseLost):
        await thief.start(grant)
    assert await thief.renew(grant) == {grant.run_id: Verdict.LOST}
    assert await worker.renew(grant) == {grant.run_id: Verdict.CONTINUE}


async def test_a_renewed_lease_outlives_its_first_term(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product)
    grant = await worker.take()
    left = "SELECT extract(epoch FROM lease_expires_at - now()) FROM ledger.runs WHERE run_id = $1"
    await ledger.execute("UPDATE ledger.runs SET lease_expires_at = now() + interval '2 s' WHERE run_id = $1", run_id)
    assert await worker.renew(grant) == {run_id: Verdict.CONTINUE}
    assert await ledger.fetchval(left, run_id) > grant.lease_s - 1


async def test_a_repeated_write_with_the_same_fence_has_its_effect_once(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product, "one", "two")
    grant = await worker.take()
    for _ in range(3):
        assert await worker.start(grant) is Verdict.CONTINUE
    for _ in range(3):
        assert await worker.finish(grant, stdout="1", start_next=True) is Verdict.CONTINUE
    for _ in range(3):
        assert await worker.finish(grant, 1, finish_run=True) is Verdict.CONTINUE
        assert await worker.finish_run(grant) is Verdict.CONTINUE
    run = await the_run(product, run_id)
    assert (run["status"], run["version"]) == ("succeeded", 5)
    assert await event_types(ledger, run_id) == [
        *("run.queued", "run.started", "step.started", "step.finished", "step.started"),
        *("step.finished", "run.finished"),
    ]


async def test_a_repeated_write_of_a_worker_that_lost_the_run_meanwhile_does_not_tell_it_to_go_on(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    await submit(product, "one", "two")
    grant = await worker.take()
    await worker.start(grant)
    await worker.finish(grant, start_next=True)
    await lose_worker(ledger, product, grant)
    with pytest.raises(LeaseLost):
        await worker.finish(grant, start_next=True)


async def test_a_released_run_is_claimable_at_once_and_costs_no_attempt(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product, "one", "two")
    await product.put(f"/v1/tenants/{(await the_run(product, run_id))['tenant_id']}", json={"max_attempts": 1})
    for fence in range(1, 4):
        grant = (await worker.claim())[0]
        assert (grant.fence, grant.attempt, grant.workspace_lost) == (fence, 1, fence > 2)
        if fence == 2:
            await worker.start(grant)
            await worker.finish(grant)
        await worker.release(grant)
        with pytest.raises(LeaseLost):
            await worker.start(grant)
    run = await the_run(product, run_id)
    assert (run["status"], run["attempt"]) == ("queued", 1)
    assert (await event_types(ledger, run_id)).count("run.requeued") == 3


async def test_a_lost_step_that_must_not_run_twice_ends_unknown(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    await submit(product, "pay", "tell", on_lost="stop")
    grant = await worker.take()
    await worker.start(grant)
    run = await lose_worker(ledger, product, grant)
    assert (run["status"], run["error"]["code"], run["attempt"]) == ("failed", "step_unknown", 1)
    assert [step["status"] for step in run["steps"]] == ["unknown", "cancelled"]
    assert run["steps"][0]["outcome"]["kind"] == "lost"
    assert await worker.claim() == []
    with pytest.raises(LateResult):
        await worker.finish(grant)


async def test_a_run_that_loses_every_worker_fails_after_its_attempts(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, tenant: str
) -> None:
    await product.put(f"/v1/tenants/{tenant}", json={"max_attempts": 2})
    await submit(product)
    assert (await lose_worker(ledger, product, await worker.take()))["attempt"] == 2
    run = await lose_worker(ledger, product, await worker.take())
    assert (run["status"], run["error"]["code"]) == ("failed", "worker_lost")
    assert await worker.claim() == []


async def test_a_run_beyond_its_time_limit_fails_also_while_it_waits_for_another_worker(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    runs = [await submit(product, limits={"timeout_s": 60}) for _ in range(2)]
    held, released = await worker.claim(2)
    assert 59 < held.remaining_s <= 60
    for grant in (held, released):
        await worker.start(grant)
    await worker.release(released)
    for run_id, outcome in zip(runs, ("timed_out", "cancelled"), strict=True):
        await ledger.execute(OVERDUE, run_id)
        run = await the_run(product, run_id, wait_s=5)
        assert (run["status"], run["error"]["code"]) == ("failed", "run_timeout")
        assert "60" in run["error"]["detail"]
        assert run["steps"][0]["outcome"]["kind"] == outcome


async def test_a_worker_that_reports_after_the_deadline_ends_the_run_as_timed_out(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    run_id = await submit(product)
    grant = await worker.take()
    await worker.start(grant)
    await ledger.execute("UPDATE ledger.runs SET deadline_at = now() WHERE run_id = $1", run_id)
    await worker.finish(grant, outcome=Exited(exit_code=143), finish_run=True)
    assert (await the_run(product, run_id))["error"]["code"] == "run_timeout"


async def test_a_worker_that_starts_two_steps_at_once_blocks_nobodys_recovery(
    product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool
) -> None:
    await submit(product, "one", "two")
    grant = await worker.take()
    await worker.start(grant)
    await worker.start(grant, 1)
    assert (await lose_worker(ledger, product, grant))["status"] == "queued"


async def test_a_write_about_an_unknown_run_or_step_is_refused(product: httpx.AsyncClient, worker: Worker) -> None:
    await submit(product)
    grant = await worker.take()
    with pytest.raises(LeaseLost):
        await worker.start(grant.model_copy(update={"run_id": "run_0"}))
    stranger = grant.steps[0].model_copy(update={"step_id": "stp_0"})
    with pytest.raises(LeaseLost):
        await worker.start(grant.model_copy(update={"steps": [stranger]}))
