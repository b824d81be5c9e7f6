"""A backend starts a run, and reads its result."""

from tests.support.planes import Plane


async def test_a_run_of_two_steps_shares_a_workspace_and_finishes(plane: Plane) -> None:
    run = await plane.acme.create_run(
        commands=["echo '[1, 2, 39]' > numbers.json", "jq add numbers.json; echo done >&2"],
        env={"REGION": "eu"},
        metadata={"ticket": "T-17", "mood": "😀"},
    )

    run = await plane.acme.wait(run.id, timeout_s=20)

    assert run.succeeded, run
    assert run.metadata == {"ticket": "T-17", "mood": "😀"}
    assert run.attempt == 1
    second = run.steps[1]
    assert second.outcome is not None
    assert (second.outcome.kind, second.outcome.exit_code) == ("exited", 0)
    assert second.stdout is not None
    assert second.stdout.text == "42\n"
    assert second.stderr is not None
    assert second.stderr.text == "done\n"


async def test_a_failed_step_ends_the_run_and_the_rest_is_not_run(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["exit 7", "echo never"])

    run = await plane.acme.wait(run.id, timeout_s=20)

    assert run.status == "failed"
    assert run.error["code"] == "step_failed"
    assert [step.status for step in run.steps] == ["failed", "cancelled"]


async def test_a_run_goes_on_after_a_failure_if_its_caller_said_so(plane: Plane) -> None:
    run = await plane.acme.create_run(commands=["exit 7", "echo still"], on_failure="continue")

    run = await plane.acme.wait(run.id, timeout_s=20)

    assert run.status == "failed", "no failure is reported as success"
    assert [step.status for step in run.steps] == ["failed", "succeeded"]


async def test_the_proxy_fetches_with_the_tenants_credential(plane: Plane, tokens: dict[str, str]) -> None:
    step = await plane.acme.exec('curl -s "$API_HOST/metrics/v1/totals?tenantId=$TENANT_ID" | jq -c .')

    assert step.stdout is not None
    assert step.stdout.text == '{"tenant":"acme","total":2450}\n'
    assert tokens["acme"] not in step.model_dump_json()
