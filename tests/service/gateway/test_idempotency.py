"""One key, one effect, one answer: whatever is repeated, however often, and whatever died in between."""

import asyncio
import secrets
from collections import Counter
from typing import Any

import asyncpg
import httpx
import pytest

from tests.support.eventually import eventually
from tests.support.product import the_run
from tests.support.worker import Worker

REPLAYED = "idempotency-replayed"


@pytest.fixture
def key() -> dict[str, str]:
    return {"Idempotency-Key": secrets.token_hex()}


async def runs_of(product: httpx.AsyncClient) -> list[str]:
    return [run["id"] for run in (await product.get("/v1/runs")).json()["items"]]


async def test_a_repeated_request_gets_the_first_answer(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str]
) -> None:
    first = await product.post("/v1/runs", json=plan, headers=key)
    again = await product.post("/v1/runs", json=plan, headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert (again.content, again.headers["location"]) == (first.content, first.headers["location"])
    assert (first.headers.get(REPLAYED), again.headers.get(REPLAYED)) == (None, "true")
    assert await runs_of(product) == [first.json()["id"]]


async def test_fifty_requests_at_once_with_one_key_make_one_run(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str]
) -> None:
    answers = await asyncio.gather(*(product.post("/v1/runs", json=plan, headers=key) for _ in range(50)))
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {202, 409}
    (run_id,) = await runs_of(product)
    assert {answer.json()["id"] for answer in answers if answer.status_code == 202} == {run_id}
    waiting = [answer for answer in answers if answer.status_code == 409]
    assert {(a.json()["code"], a.headers["retry-after"]) for a in waiting} <= {("idempotency_in_progress", "1")}
    assert sum(answer.headers.get(REPLAYED) is None and answer.status_code == 202 for answer in answers) == 1


async def test_while_the_first_request_runs_its_repeat_waits_and_another_body_is_refused(
    product: httpx.AsyncClient, worker: Worker, key: dict[str, str]
) -> None:
    body = {"command": "sleep 1"}
    executing = asyncio.create_task(product.post("/v1/exec", json=body, headers=key))
    grant = await worker.take()
    repeat = await product.post("/v1/exec", json=body, headers=key)
    assert (repeat.status_code, repeat.json()["code"]) == (409, "idempotency_in_progress")
    other = await product.post("/v1/exec", json={"command": "rm -r ."}, headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert other.headers["content-type"] == "application/problem+json"
    await worker.work(grant, stdout="done\n")
    first = await executing
    replayed = await product.post("/v1/exec", json=body, headers=key)
    assert (replayed.status_code, replayed.content) == (200, first.content)
    assert replayed.headers[REPLAYED] == "true"
    assert await worker.claim() == [], "one run"


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/v1/runs", {"steps": [{"bash": {"command": "false"}}]}, "another body"),
        ("/v1/exec", {"steps": [{"bash": {"command": "true"}}]}, "a body that the other path does not take"),
        ("/v1/sessions", None, "another path"),
    ],
)
async def test_a_key_that_comes_with_something_else_is_refused(
    product: httpx.AsyncClient,
    plan: dict[str, Any],
    key: dict[str, str],
    path: str,
    body: dict[str, Any] | None,
    reason: str,
) -> None:
    await product.post("/v1/runs", json=plan, headers=key)
    refused = await product.post(path, json=body, headers=key)
    assert refused.status_code == 422, reason
    assert len(await runs_of(product)) == 1


async def test_a_key_belongs_to_its_tenant(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str]
) -> None:
    first = await product.post("/v1/runs", json=plan, headers=key)
    stranger = {**key, "Caisson-Tenant": f"{first.json()['tenant_id']} b"}
    other = await product.post("/v1/runs", json=plan, headers=stranger)
    assert other.status_code == 202
    assert other.headers.get(REPLAYED) is None
    assert other.json()["id"] != first.json()["id"]


async def test_a_key_belongs_to_its_user_and_tells_another_nothing(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str]
) -> None:
    first = await product.post("/v1/runs", json=plan, headers=key)
    other = {"steps": [{"bash": {"command": "false"}}]}
    made = [first.json()["id"]]
    for user, body in (("u-2", plan), ("u-3", other)):
        answer = await product.post("/v1/runs", json=body, headers={**key, "Caisson-User": user})
        assert (answer.status_code, answer.headers.get(REPLAYED)) == (202, None)
        assert answer.json()["user_id"] == user
        made.append(answer.json()["id"])
    assert len(set(made)) == 3
    assert (await product.post("/v1/runs", json=plan, headers=key)).content == first.content


async def test_a_key_whose_time_is_over_makes_a_new_run(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str], ledger: asyncpg.Pool
) -> None:
    first = await product.post("/v1/runs", json=plan, headers=key)
    await ledger.execute("UPDATE ledger.idempotency SET expires_at = now() WHERE key = $1", key["Idempotency-Key"])
    later = await product.post("/v1/runs", json=plan, headers=key)
    assert later.headers.get(REPLAYED) is None
    assert await runs_of(product) == [later.json()["id"], first.json()["id"]]


async def test_a_refused_request_does_not_use_up_its_key(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str]
) -> None:
    refused = await product.post("/v1/runs", json={**plan, "limits": {"pids": 10**6}}, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (422, "limit_exceeded")
    accepted = await product.post("/v1/runs", json=plan, headers=key)
    assert (accepted.status_code, accepted.headers.get(REPLAYED)) == (202, None)


async def test_the_repeat_of_a_request_that_died_goes_on_with_the_same_run(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str], ledger: asyncpg.Pool
) -> None:
    first = await product.post("/v1/runs", json=plan, headers=key)
    unanswered = (
        "UPDATE ledger.idempotency SET status = NULL, headers = NULL, body = NULL, locked_until = $2 WHERE key = $1"
    )
    locked = await ledger.fetchval("SELECT now() + interval '1 h'")
    await ledger.execute(unanswered, key["Idempotency-Key"], locked)
    assert (await product.post("/v1/runs", json=plan, headers=key)).status_code == 409
    await ledger.execute(unanswered, key["Idempotency-Key"], await ledger.fetchval("SELECT now()"))
    repeat = await product.post("/v1/runs", json=plan, headers=key)
    assert (repeat.status_code, repeat.json()["id"]) == (202, first.json()["id"])
    assert len(await runs_of(product)) == 1


async def test_a_repeated_cancel_with_a_key_replays_its_answer(
    product: httpx.AsyncClient, plan: dict[str, Any], key: dict[str, str], worker: Worker
) -> None:
    run_id = (await product.post("/v1/runs", json=plan)).json()["id"]
    await worker.take()
    first = await product.post(f"/v1/runs/{run_id}/cancel", headers=key)
    await the_run(product, run_id, wait_s=5)
    again = await product.post(f"/v1/runs/{run_id}/cancel", headers=key)
    assert (again.content, again.headers[REPLAYED]) == (first.content, "true")


async def test_the_client_that_went_away_finds_its_run_under_the_same_key(
    product: httpx.AsyncClient, key: dict[str, str], worker: Worker
) -> None:
    body = {"command": "true"}
    with pytest.raises(httpx.ReadTimeout):
        await product.post("/v1/exec", json=body, headers=key, timeout=0.3)
    grant = await worker.take()
    await worker.work(grant)

    async def replayed() -> httpx.Response | None:
        answer = await product.post("/v1/exec", json=body, headers=key)
        return answer if answer.status_code == 200 else None

    answer = await eventually(replayed)
    assert answer is not None
    assert (answer.json()["run_id"], answer.headers[REPLAYED]) == (grant.run_id, "true")
