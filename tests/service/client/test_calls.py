"""The client's calls against a real HTTP server that keeps the API's rules."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.responses import RedirectResponse, Response

from caisson.client.client import Client
from caisson.client.errors import (
    Denied,
    InvalidInput,
    KeyLost,
    NotFound,
    ProtocolViolation,
    SessionDeleting,
    TenantMismatch,
    TenantRequired,
    Unauthenticated,
    Unreachable,
    UserRequired,
    WaitTimedOut,
)
from caisson.client.requests import Bash, Limits, StepSpec, TenantSettings
from caisson.client.retrying import Retries
from tests.support.fake_api import PLATFORM_KEY, TENANT_KEY, FakeApi
from tests.support.fake_api_answers import problem
from tests.support.played_runs import Behaviour

SOON = Retries(first_delay_s=0.01, give_up_after_s=0.1)


async def test_a_run_goes_from_its_request_to_its_end(client: Client, api: FakeApi) -> None:
    api.behaviours["exit 3"] = Behaviour(outcome={"kind": "exited", "exit_code": 3}, stderr=b"no\n")
    accepted = await client.create_run(
        steps=[StepSpec(bash=Bash(command="exit 3", timeout_s=5)), "echo hi"],
        env={"REGION": "eu"},
        limits=Limits(memory_mib=64),
        on_failure="continue",
        metadata={"ticket": "T-17"},
    )
    run = await client.wait(accepted.id)
    assert (run.status, run.succeeded, run.metadata) == ("failed", False, {"ticket": "T-17"})
    first, second = run.steps
    assert first.outcome is not None
    assert (first.outcome.kind, first.outcome.exit_code) == ("exited", 3)
    assert second.stdout is not None
    assert second.stdout.text == "echo hi\n"
    body = api.seen("POST", "/v1/runs")[0].body
    assert body == {
        "steps": [{"bash": {"command": "exit 3", "timeout_s": 5.0}}, {"bash": {"command": "echo hi"}}],
        "env": {"REGION": "eu"},
        "limits": {"memory_mib": 64},
        "on_failure": "continue",
        "metadata": {"ticket": "T-17"},
    }


async def test_answers_of_a_newer_gateway_are_understood(client: Client, api: FakeApi) -> None:
    run = await client.create_run(commands=["true"])
    assert (await client.wait(run.id)).model_extra == {"from_a_newer_gateway": True}
    api.runs[run.id].document["status"] = "hibernating"
    newer = await client.get_run(run.id)
    assert (newer.status, newer.finished) == ("hibernating", False)


async def test_exec_returns_the_finished_step(client: Client, api: FakeApi) -> None:
    step = await client.exec("echo hi", timeout_s=5, upstreams={"metrics": "the user's token"})
    assert step.finished
    assert step.run_id in api.runs
    assert step.stdout is not None
    assert step.stdout.text == "echo hi\n"
    assert api.seen("POST", "/v1/exec")[0].body["upstreams"] == {"metrics": {"bearer": "the user's token"}}


async def test_waiting_ends_after_the_time_given_and_the_run_goes_on(client: Client, api: FakeApi) -> None:
    api.behaviours["sleep"] = Behaviour(holds=True)
    run = await client.create_run(commands=["sleep"])
    with pytest.raises(WaitTimedOut, match=run.id):
        await client.wait(run.id, timeout_s=0.2)
    cancelled = await client.cancel(run.id)
    assert cancelled is not None
    assert cancelled.status == "cancelled"


async def test_all_pages_come_as_one_iterator(client: Client, api: FakeApi) -> None:
    created = [(await client.create_run(commands=[f"echo {number}"])).id for number in range(120)]
    assert [run.id async for run in client.list_runs()] == created[::-1]
    assert len(api.seen("GET", "/v1/runs")) == 3
    assert [run.id async for run in client.list_runs(limit=60)] == created[:-61:-1]
    assert len(api.seen("GET", "/v1/runs")) == 5
    assert [run async for run in client.list_runs(status="cancelled")] == []


async def test_an_item_that_is_not_of_the_api_names_its_fields_and_no_values(client: Client, api: FakeApi) -> None:
    run = await client.create_run(commands=["true"])
    await client.wait(run.id)
    api.runs[run.id].document.update(created_at="secret", steps=7)
    with pytest.raises(ProtocolViolation, match="created_at, steps") as caught:
        await client.get_run(run.id)
    assert "secret" not in str(caught.value)


async def test_refusals_are_typed_and_name_field_and_limit(client: Client) -> None:
    with pytest.raises(InvalidInput) as caught:
        await client.create_run(commands=["true"], limits=Limits(memory_mib=9999))
    assert caught.value.code == "limit_exceeded"
    assert caught.value.status == 422
    assert [(item.field, item.message) for item in caught.value.errors] == [("limits.memory_mib", "at most 2048")]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"remove": ["text"]}, "remove.0"),
        ({"remove": ["expires_at"], "expires_at": datetime(2040, 1, 1, tzinfo=UTC)}, "remove"),
    ],
    ids=["has no end", "given and removed"],
)
async def test_a_change_that_removes_what_it_must_not_is_not_sent(
    client: Client, api: FakeApi, changes: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await client.change_memory("mem_1", **changes)
    assert [item.field for item in caught.value.errors] == [field]
    assert api.requests == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"steps": [], "limits": {"timeout_s": math.nan}}, "body"),
        ({"steps": [], "metadata": {"text": "\ud800"}}, "body"),
        ({"steps": [], "metadata": {"time": datetime(2026, 1, 31, tzinfo=UTC)}}, "body"),
    ],
    ids=["NaN would become null", "a lone surrogate is no text", "a time is no JSON"],
)
async def test_what_json_cannot_carry_is_not_sent(client: Client, api: FakeApi, body: object, field: str) -> None:
    assert isinstance(body, dict)
    with pytest.raises(InvalidInput) as caught:
        await client.submit(body)
    assert caught.value.errors[0].field == field
    with pytest.raises(InvalidInput, match="timeout_s"):
        await client.exec("true", timeout_s=math.nan)
    assert api.requests == []


async def test_another_tenants_run_is_not_found(client: Client) -> None:
    run = await client.create_run(commands=["true"])
    with pytest.raises(NotFound):
        await client.for_tenant("globex", "u-9").get_run(run.id)
    assert (await client.for_tenant("acme").get_run(run.id)).id == run.id


async def test_ids_of_any_script_arrive_as_they_are(client: Client, api: FakeApi) -> None:
    for tenant in ("株式会社", "a/b c%2F?#", "Ünïcode & co"):
        assert (await client.put_tenant(tenant, TenantSettings(max_concurrency=2))).id == tenant
        run = await client.for_tenant(tenant, "Zoë").create_run(commands=["true"])
        assert (run.tenant_id, run.user_id) == (tenant, "Zoë")


@pytest.mark.parametrize("run_id", ["", ".", ".."])
async def test_an_id_cannot_climb_out_of_its_path(client: Client, api: FakeApi, run_id: str) -> None:
    with pytest.raises(InvalidInput):
        await client.get_run(run_id)
    assert api.requests == []


async def test_who_calls_is_told_and_checked(api: FakeApi) -> None:
    async with Client(api.url, TENANT_KEY) as tenant:
        assert (await tenant.create_run(commands=["true"])).tenant_id == "acme"
        with pytest.raises(TenantMismatch):
            await tenant.for_tenant("globex").create_run(commands=["true"])
    async with Client(api.url, PLATFORM_KEY) as platform:
        with pytest.raises(TenantRequired):
            await platform.get_run("run_1")
        with pytest.raises(UserRequired):
            await platform.for_tenant("acme").create_run(commands=["true"])
    async with Client(api.url, "csn_wrong_key") as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.create_run(commands=["true"])


async def test_the_key_is_in_no_repr_and_in_no_error(api: FakeApi) -> None:
    async with Client(api.url, PLATFORM_KEY, tenant="acme") as client:
        assert PLATFORM_KEY not in repr(client) + repr(vars(client)) + repr(vars(client._transport))
        api.scripted.append(problem(403, "denied", "no"))
        with pytest.raises(Denied) as caught:
            await client.get_tenant("acme")
        assert PLATFORM_KEY not in repr(caught.value) + repr(vars(caught.value))
    with pytest.raises(ValueError, match="printable") as refused:
        Client(api.url, f"{PLATFORM_KEY}\n")
    assert PLATFORM_KEY not in str(refused.value)


@pytest.mark.parametrize("url", ["", "caisson.internal", "ftp://host", "http://", "http://user:secret@host"])
def test_an_address_that_is_no_gateway_s_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="URL") as caught:
        Client(url, PLATFORM_KEY)
    assert "secret" not in str(caught.value)


async def test_the_key_follows_no_redirect(client: Client, api: FakeApi) -> None:
    api.scripted.append(RedirectResponse("http://127.0.0.1:1/elsewhere"))
    with pytest.raises(ProtocolViolation, match="307"):
        await client.get_run("run_1")


async def test_an_answer_that_is_not_json_is_not_of_this_api(client: Client, api: FakeApi) -> None:
    api.scripted.append(Response("<html>", media_type="text/html"))
    with pytest.raises(ProtocolViolation, match="JSON"):
        await client.get_run("run_1")


async def test_a_gateway_that_is_not_there_is_unreachable_with_the_key_for_another_try() -> None:
    async with Client("http://127.0.0.1:9", PLATFORM_KEY, retries=SOON) as client:
        with pytest.raises(Unreachable) as caught:
            await client.create_run(commands=["true"], idempotency_key="mine")
    assert caught.value.idempotency_key == "mine"


async def test_sessions_come_and_go(client: Client) -> None:
    session = await client.create_session(metadata={"topic": "x"})
    assert (await client.get_session(session.id)).user_id == "u-1"
    assert [found.id async for found in client.list_sessions()] == [session.id]
    assert await client.delete_session(session.id) is None
    assert await client.delete_session(session.id) is None, "repeated, it is as done as before"
    for refused in (client.get_session(session.id), client.delete_session("ses_of_nobody")):
        with pytest.raises(NotFound):
            await refused


async def test_a_session_in_which_something_runs_is_deleted_bit_by_bit(client: Client, api: FakeApi) -> None:
    session = await client.create_session()
    api.behaviours["sleep 30"] = Behaviour(holds=True)
    run = await client.create_run(commands=["sleep 30"], session_id=session.id)
    left = await client.delete_session(session.id)
    assert left is not None
    assert left.deleting_at is not None
    with pytest.raises(SessionDeleting):
        await client.create_run(commands=["true"], session_id=session.id)
    assert (await client.wait(run.id)).status == "cancelled"
    assert await client.delete_session(session.id) is None
    with pytest.raises(NotFound):
        await client.get_run(run.id)


async def test_tenants_credentials_and_keys_are_administered(client: Client, api: FakeApi) -> None:
    settings = TenantSettings(max_concurrency=4, ceilings=Limits(pids=64))
    tenant = await client.put_tenant("acme", settings)
    assert tenant.model_dump(exclude_none=True)["ceilings"] == {"pids": 64}
    assert await client.get_tenant("acme") == tenant
    await client.put_credential("acme", "metrics", bearer="s3cret")
    assert api.credentials == {("acme", "metrics"): {"bearer": "s3cret"}}
    await client.delete_credential("acme", "metrics")
    assert api.credentials == {}
    key = await client.create_key("ci", tenant_id="acme")
    assert key.key is not None
    assert key.key.get_secret_value() not in repr(key) + key.model_dump_json()
    await client.delete_key(key.id)
    assert [bool(found.revoked_at) async for found in client.list_keys()] == [True]


async def test_a_key_whose_answer_was_lost_is_told_by_its_id(client: Client, api: FakeApi) -> None:
    api.scripted.append(Response('{"id": "csn_1", "prefix": "csn_1", "name": "ci", "key": null}', 201))
    with pytest.raises(KeyLost, match="csn_1"):
        await client.create_key("ci")


async def test_security_events_are_asked_for_in_utc(client: Client, api: FakeApi) -> None:
    api.security_events = [
        {"id": "sec_1", "kind": "egress_blocked", "reason": "1.1.1.1:443", "occurred_at": "2026-01-31T12:00:00.000Z"}
    ]
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert [event.kind async for event in client.security_events(since=since)] == ["egress_blocked"]
    assert [event async for event in client.security_events(since=since.replace(hour=13))] == []
