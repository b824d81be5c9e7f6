"""The fake gateway, which the client's tests trust, answers as a real one does."""

from typing import Any

from caisson.client.client import Client
from caisson.client.errors import ApiError
from caisson.client.requests import Limits, TenantSettings
from tests.support.eventually import eventually
from tests.support.fake_api import PLATFORM_KEY, FakeApi
from tests.support.planes import Plane
from tests.support.played_runs import Behaviour


async def refusal(answer: Any) -> tuple[int | None, str, list[str]]:
    try:
        await answer
    except ApiError as error:
        return error.status, error.code, [item.field for item in error.errors]
    raise AssertionError("it was not refused")


async def observe(client: Client, nobody: Client) -> dict[str, Any]:
    """Do what the client's tests do, and note what they rely on."""
    run = await client.create_run(commands=["echo hi; echo no >&2; exit 3", "echo never"], idempotency_key="once")
    again = await client.create_run(commands=["echo hi; echo no >&2; exit 3", "echo never"], idempotency_key="once")
    ended = await client.wait(run.id, timeout_s=20)
    events = [event async for event in client.events(run.id)]
    finished = next(event for event in events if event.type == "step.finished")
    first, second = ended.steps
    held = await client.create_run(commands=["sleep 30"])
    async for event in client.events(held.id):
        if event.type == "step.started":
            break
    await client.cancel(held.id)
    session = await client.create_session()
    in_session = await client.create_run(commands=["sleep 30"], session_id=session.id)
    async for event in client.events(in_session.id):
        if event.type == "step.started":
            break
    deleting = await client.delete_session(session.id)
    refused_there = await refusal(client.create_run(commands=["echo hi"], session_id=session.id))

    async def is_deleted() -> bool:
        return await client.delete_session(session.id) is None

    await eventually(is_deleted, within_s=20)
    listed = [item async for item in client.list_runs(limit=1)]
    return {
        "replayed": run.id == again.id,
        "statuses": (ended.status, first.status, second.status),
        "outcomes": [step.outcome and (step.outcome.kind, step.outcome.exit_code) for step in ended.steps],
        "error": ended.error["code"],
        "events": [(event.seq, event.type) for event in events if event.durable],
        "after the end": [event async for event in client.events(run.id, after=events[-1].seq)],
        "streams of step.finished": [set(finished.data[name]) >= {"bytes", "lossy"} for name in ("stdout", "stderr")],
        "cancelled": (await client.wait(held.id, timeout_s=20)).status,
        "a page without output": (listed[0].id == held.id, listed[0].steps[0].stdout),
        "unknown run": await refusal(client.get_run("run_00000000000000000000000000")),
        "key reused": await refusal(client.create_run(commands=["other"], idempotency_key="once")),
        "over the ceiling": await refusal(client.create_run(commands=["x"], limits=Limits(memory_mib=999_999))),
        "unknown field": await refusal(client.submit({"steps": [{"bash": {"command": "x"}}], "stepz": []})),
        "no tenant": await refusal(nobody.create_run(commands=["x"])),
        "no user": await refusal(nobody.for_tenant("acme").create_run(commands=["x"])),
        "tenant": (await client.put_tenant("of the contract", TenantSettings(max_concurrency=2))).id,
        "unknown tenant": await refusal(nobody.get_tenant("nobody")),
        "a new key": (await client.create_key("contract", tenant_id="acme")).key is not None,
        "session": (await client.get_session((await client.create_session()).id)).user_id,
        "deleting": deleting is not None and deleting.deleting_at is not None,
        "in a session that is being deleted": refused_there,
        "a run of a deleted session": await refusal(client.get_run(in_session.id)),
        "in a deleted session": await refusal(client.create_run(commands=["echo hi"], session_id=session.id)),
        "a deleted session": await refusal(client.get_session(session.id)),
        "deleting nobody's session": await refusal(client.delete_session("ses_00000000000000000000000000")),
        "ready": bool(await client.ready()),
    }


async def test_the_fake_gateway_answers_like_a_real_one(plane: Plane) -> None:
    with FakeApi() as fake:
        fake.behaviours["echo hi; echo no >&2; exit 3"] = Behaviour(
            outcome={"kind": "exited", "exit_code": 3}, stdout=b"hi\n", stderr=b"no\n"
        )
        fake.behaviours["sleep 30"] = Behaviour(holds=True)
        async with Client(fake.url, PLATFORM_KEY) as nobody:
            faked = await observe(nobody.for_tenant("acme", "u-1"), nobody)
    async with Client(plane.stack.url, plane.stack.platform_key) as nobody:
        real = await observe(nobody.for_tenant("acme", "u-1"), nobody)
    assert faked == real
