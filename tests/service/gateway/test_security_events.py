"""What was blocked, rewritten or refused is told: once, to the tenant, in the run's events and in the list."""

from typing import Any

import httpx
import pytest

from caisson.common.ids import new_id
from caisson.common.leases import Grant, SecurityEvent, SecurityKind
from caisson.common.outcome import Blocked
from tests.support.product import submit, the_run
from tests.support.sse import events_of
from tests.support.worker import Worker


def report(grant: Grant, kind: SecurityKind = SecurityKind.PROXY_REWRITE, **changes: Any) -> SecurityEvent:
    fields = {"id": new_id("sec"), "kind": kind, "run_id": grant.run_id, "reason": "a foreign tenant id"}
    return SecurityEvent(**{**fields, **changes})


async def listed(product: httpx.AsyncClient, **params: str | int) -> list[dict[str, Any]]:
    response = await product.get("/v1/security-events", params=params)
    assert response.status_code == 200, response.text
    items: list[dict[str, Any]] = response.json()["items"]
    return items


async def test_a_blocked_command_is_told_with_its_step(
    product: httpx.AsyncClient, worker: Worker, tenant: str
) -> None:
    run_id = await submit(product)
    grant = await worker.take()
    await worker.start(grant)
    blocked = report(grant, SecurityKind.COMMAND_BLOCKED, guard="tenant", snippet="curl …", detail={"word": 3})
    blocked = blocked.model_copy(update={"step_id": grant.steps[0].step_id})
    await worker.finish(
        grant, outcome=Blocked(guard="tenant", reason="names another tenant"), security=(blocked,), finish_run=True
    )
    async with events_of(product, run_id) as reader:
        events = await reader.rest()
    assert [event.type for event in events][3:] == ["security.command_blocked", "step.finished", "run.finished"]
    assert (events[3].data["guard"], events[3].data["detail"]) == ("tenant", {"word": 3})
    (told,) = await listed(product)
    assert (told["id"], told["tenant_id"], told["run_id"], told["step_id"]) == (
        *(blocked.id, tenant, run_id),
        grant.steps[0].step_id,
    )
    step = (await the_run(product, run_id))["steps"][0]
    assert (step["status"], step["outcome"]["guard"]) == ("failed", "tenant")
    assert step["error"] == {"code": "blocked", "detail": "names another tenant", "step_id": None}


async def test_a_report_counts_once_however_often_it_comes(product: httpx.AsyncClient, worker: Worker) -> None:
    run_id = await submit(product)
    grant = await worker.take()
    await worker.start(grant)
    told = report(grant)
    for _ in range(3):
        await worker.record_security(told, told)
    await worker.finish(grant, finish_run=True)
    late = report(grant, SecurityKind.PROXY_DENIED)
    await worker.record_security(late)
    assert [event["id"] for event in await listed(product)] == [late.id, told.id]
    async with events_of(product, run_id) as reader:
        events = await reader.rest()
    assert [event.type for event in events].count("security.proxy_rewrite") == 1
    assert events[-1].type == "run.finished", "a report that comes late is listed, and the stream stays ended"
    assert [event.id for event in events] == list(range(1, len(events) + 1))


async def test_a_report_about_the_worst_input_is_stored_all_the_same(
    product: httpx.AsyncClient, worker: Worker
) -> None:
    await submit(product)
    grant = await worker.take()
    await worker.start(grant)
    worst = {"path": "/a\x00b", "words": ["\x00", {"\x00": float("nan")}]}
    denied = report(grant, SecurityKind.PROXY_DENIED, snippet="\x00" * 200, reason="no \x00", detail=worst)
    blocked = report(grant, SecurityKind.COMMAND_BLOCKED, guard="a\x00", detail=worst)
    await worker.record_security(denied)
    outcome = Blocked(guard="a\x00", reason="no \x00 here")
    await worker.finish(grant, outcome=outcome, security=(blocked,), finish_run=True)
    clean = {"path": "/a\ufffdb", "words": ["\ufffd", {"\ufffd": "nan"}]}
    told = {event["kind"]: event for event in await listed(product)}
    assert {kind: event["detail"] for kind, event in told.items()} == dict.fromkeys(
        ("proxy_denied", "command_blocked"), clean
    )
    assert told["proxy_denied"]["snippet"] == "\ufffd" * 200
    step = (await the_run(product, grant.run_id))["steps"][0]
    assert step["outcome"]["reason"] == "no \ufffd here"


async def test_a_report_about_no_run_of_ours_changes_nothing(product: httpx.AsyncClient, worker: Worker) -> None:
    await submit(product)
    grant = await worker.take()
    await worker.record_security(report(grant, run_id="run_0"))
    assert await listed(product) == []


async def test_events_are_listed_by_run_and_time_page_by_page(product: httpx.AsyncClient, worker: Worker) -> None:
    runs = [await submit(product) for _ in range(2)]
    grants = {grant.run_id: grant for grant in await worker.claim(2)}
    reports = sorted((report(grants[runs[number % 2]]) for number in range(6)), key=lambda told: told.id)
    await worker.record_security(*reports)
    newest_first = [told.id for told in reports][::-1]
    of_one_run = [told.id for told in reports if told.run_id == runs[0]][::-1]
    everything = await listed(product)
    assert [event["id"] for event in everything] == newest_first
    assert [event["id"] for event in await listed(product, run_id=runs[0])] == of_one_run
    assert await listed(product, since=everything[-1]["occurred_at"]) == everything
    assert await listed(product, since="2999-01-01T00:00:00+01:00") == []
    first = (await product.get("/v1/security-events", params={"limit": 4})).json()
    rest = await listed(product, limit=4, cursor=first["next_cursor"])
    assert [event["id"] for event in first["items"] + rest] == newest_first


@pytest.mark.parametrize(
    "since", ["yesterday", "2026-01-31T12:00:00", "", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"]
)
async def test_a_time_that_is_none_is_refused(product: httpx.AsyncClient, since: str) -> None:
    refused = await product.get("/v1/security-events", params={"since": since})
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json()["errors"]] == ["since"]


async def test_a_tenant_sees_its_own_events_and_a_platform_key_without_one_sees_all(
    product: httpx.AsyncClient, worker: Worker, tenant: str
) -> None:
    await submit(product)
    told = report(await worker.take())
    await worker.record_security(told)
    other = await product.get("/v1/security-events", headers={"Caisson-Tenant": f"{tenant} b"})
    assert other.json()["items"] == []
    del product.headers["Caisson-Tenant"]
    assert (await listed(product))[0]["id"] == told.id
