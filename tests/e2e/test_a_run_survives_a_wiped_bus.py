"""The whole NATS store is deleted while runs are active: it costs latency, never work."""

from tests.support.planes import Plane, text


async def test_active_and_queued_runs_finish(plane: Plane) -> None:
    tenant = plane.client_of("survives-wipes")
    await tenant.put_tenant("survives-wipes", {"max_concurrency": 1})
    runs = [await tenant.create_run(commands=["sleep 0.5; echo done"]) for _ in range(4)]

    await plane.stack.wipe_nats()

    for run in runs:
        finished = await tenant.wait(run.id, timeout_s=40)
        assert finished.succeeded, finished


async def test_the_proxy_knows_a_running_run_again(plane: Plane) -> None:
    run = await plane.acme.create_run(
        commands=[
            "sleep 4; for i in $(seq 40); do "
            'curl -sf "$API_HOST/metrics/v1/totals?tenantId=$TENANT_ID" && break; sleep 0.2; done'
        ]
    )
    await plane.until(run.id, "step.started")

    await plane.stack.wipe_nats()

    finished = await plane.acme.wait(run.id, timeout_s=40)
    assert finished.steps[0].stdout is not None
    assert '"total":2450' in finished.steps[0].stdout.text, finished
    assert text(await plane.acme.exec("echo again")) == "again\n"
