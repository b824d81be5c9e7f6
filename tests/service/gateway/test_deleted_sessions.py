"""A deleted session: what runs is cancelled, nothing that was stored of it is left, and its end is told once."""

import asyncio
import secrets
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import httpx
import pytest

from caisson.common.envelope import Envelope, open_envelope
from caisson.common.errors import LeaseLost
from caisson.common.ids import new_id
from caisson.common.leases import Grant, SecurityEvent, SecurityKind, Verdict
from caisson.common.outcome import Cancelled
from caisson.common.subjects import EVENTS_STREAM
from caisson.stack.service_process import ServiceProcess
from tests.support.eventually import eventually
from tests.support.gateway import Ground, open_ledger, running
from tests.support.plane import Plane
from tests.support.product import submit
from tests.support.published import jetstream_of
from tests.support.sse import events_of
from tests.support.tables import whole_ledger
from tests.support.worker import Worker


@pytest.fixture
async def session(product: httpx.AsyncClient) -> str:
    return str((await product.post("/v1/sessions", json={"metadata": {"topic": "canary-topic"}})).json()["id"])


async def delete(product: httpx.AsyncClient, session: str) -> int:
    return (await product.delete(f"/v1/sessions/{session}")).status_code


async def until_gone(product: httpx.AsyncClient, session: str) -> None:
    """Repeat the deletion, as a caller may, until nothing is left to do."""

    async def is_gone() -> bool:
        return await delete(product, session) == 204

    await eventually(is_gone, within_s=10)


async def told(ground: Ground, session: str) -> list[Envelope]:
    """Return what the bus holds about a session."""
    async with jetstream_of(ground.nats) as jetstream:
        reader = await jetstream.subscribe("caisson.evt.>", stream=EVENTS_STREAM, ordered_consumer=True)
        stored = (await jetstream.stream_info(EVENTS_STREAM)).state.messages
        messages = [await reader.next_msg(timeout=5) for _ in range(stored)]
        await reader.unsubscribe()
    envelopes = [open_envelope(message.subject, message.data)[1] for message in messages]
    return [envelope for envelope in envelopes if envelope.session_id == session]


async def test_a_session_at_rest_goes_at_once_and_with_it_all_that_told_of_it(
    ground: Ground, product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, session: str
) -> None:
    canary = f"canary{secrets.token_hex(8)}"
    keys = [{"Idempotency-Key": secrets.token_hex()} for _ in range(2)]
    body = {"session_id": session, "steps": [{"bash": {"command": f"echo {canary}"}}], "metadata": {"about": canary}}
    run_id = (await product.post("/v1/runs", json=body, headers=keys[0])).json()["id"]
    other = await submit(product, f"echo not{canary[6:]}")
    grants = {grant.run_id: grant for grant in [await worker.take(), await worker.take()]}
    grant = grants[run_id]
    blocked = SecurityEvent(id=new_id("sec"), kind=SecurityKind.PROXY_DENIED, run_id=run_id, reason=canary)
    await worker.start(grant)
    await worker.record_security(blocked)
    await worker.finish(grant, stdout=f"{canary}\n", finish_run=True)
    await worker.work(grants[other])
    assert canary in (await product.post(f"/v1/runs/{run_id}/cancel", headers=keys[1])).text
    await eventually(lambda: _tells(ground, session, canary))
    assert (await whole_ledger(ledger)).count(canary) > 5

    await until_gone(product, session)

    left = await whole_ledger(ledger)
    assert [word for word in (canary, run_id, "canary-topic") if word in left] == []
    [fact] = await eventually(lambda: told(ground, session))
    assert (fact.type, fact.user_id, fact.run_id) == ("session.deleted", "u-1", None)
    assert fact.data == {"removed": {"runs": 1, "events": 6, "security_events": 1}}
    for path in (f"/v1/sessions/{session}", f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/events"):
        assert (await product.get(path)).status_code == 404, path
    repeats = [await product.post("/v1/runs", json=body, headers=keys[0])]
    repeats.append(await product.post(f"/v1/runs/{run_id}/cancel", headers=keys[1]))
    for repeat in repeats:
        assert (repeat.status_code, repeat.json()["code"], canary in repeat.text) == (404, "not_found", False)
        assert repeat.headers["idempotency-replayed"] == "true"
    assert (await product.get(f"/v1/runs/{other}")).json()["status"] == "succeeded"
    assert (await product.get("/v1/sessions")).json()["items"] == []


async def _tells(ground: Ground, session: str, word: str) -> bool:
    """Whether the bus has a copy of what the proxy said."""
    return word in str(await told(ground, session))


async def test_the_key_that_began_a_session_does_not_tell_of_it_and_begins_no_other(
    product: httpx.AsyncClient, ledger: asyncpg.Pool
) -> None:
    key = {"Idempotency-Key": secrets.token_hex()}
    body = {"metadata": {"topic": "begun-with-a-key"}}
    session = (await product.post("/v1/sessions", json=body, headers=key)).json()["id"]
    assert await delete(product, session) == 204, "nothing ran: it is gone at once"
    again = await product.post("/v1/sessions", json=body, headers=key)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    assert "begun-with-a-key" not in await whole_ledger(ledger)
    assert (await product.get("/v1/sessions")).json()["items"] == []


async def test_what_runs_is_cancelled_and_a_worker_that_comes_late_has_lost_its_lease(
    ground: Ground, product: httpx.AsyncClient, worker: Worker, ledger: asyncpg.Pool, session: str
) -> None:
    obeys, silent, queued = [await submit(product, session_id=session) for _ in range(3)]
    grants = {grant.run_id: grant for grant in [await worker.take(), await worker.take()]}
    for grant in grants.values():
        await worker.start(grant)
    async with AsyncExitStack() as stack:
        streams = [events_of(product, run_id) for run_id in (obeys, silent, queued)]
        readers = [await stack.enter_async_context(stream) for stream in streams]
        assert [event.type for reader in readers if (event := await reader.next())] == ["run.queued"] * 3
        answered = await product.delete(f"/v1/sessions/{session}")
        rests = asyncio.gather(*(reader.rest() for reader in readers))
        await obey(worker, grants[obeys])
        for events in await rests:
            assert (events[-1].type, events[-1].data["status"]) == ("run.finished", "cancelled")
    assert (answered.status_code, answered.json()["id"]) == (202, session)
    assert answered.json()["deleting_at"] is not None

    await until_gone(product, session)

    for late in (worker.finish(grants[silent]), worker.finish_run(grants[silent]), worker.release(grants[silent])):
        with pytest.raises(LeaseLost, match="no such run"):
            await late
    assert await worker.renew(grants[silent]) == {silent: Verdict.LOST}
    assert await worker.claim() == []
    left = await whole_ledger(ledger)
    assert [run_id for run_id in (obeys, silent, queued) if run_id in left] == []
    refused = await product.post("/v1/runs", json={"session_id": session, "steps": [{"bash": {"command": "true"}}]})
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


async def obey(worker: Worker, grant: Grant) -> None:
    assert await worker.renew(grant) == {grant.run_id: Verdict.CANCEL}
    await worker.finish(grant, outcome=Cancelled(), finish_run=True)


async def test_in_a_session_that_is_being_deleted_nothing_begins(
    product: httpx.AsyncClient, worker: Worker, session: str, plan: dict[str, Any]
) -> None:
    await submit(product, session_id=session)
    grant = await worker.take()
    await worker.start(grant)
    assert await delete(product, session) == 202
    for path, body in (("/v1/runs", plan), ("/v1/exec", {"command": "true"})):
        refused = await product.post(path, json=body | {"session_id": session})
        assert (refused.status_code, refused.json()["code"]) == (409, "session_deleting")
    seen = (await product.get(f"/v1/sessions/{session}")).json()
    assert seen["deleting_at"] is not None
    assert (await product.get("/v1/sessions")).json()["items"] == [seen]
    await obey(worker, grant)
    await until_gone(product, session)


async def test_what_a_killed_gateway_left_another_finishes(
    ground: Ground, gateway: ServiceProcess, product: httpx.AsyncClient, ledger: asyncpg.Pool, session: str
) -> None:
    run_ids = [await submit(product, session_id=session) for _ in range(3)]
    await ledger.execute("UPDATE ledger.sessions SET deleting_at = now() WHERE session_id = $1", session)

    async def is_deleted() -> bool:
        sql = "SELECT deleted_at IS NOT NULL AND published_at IS NOT NULL FROM ledger.sessions WHERE session_id = $1"
        return bool(await ledger.fetchval(sql, session))

    await eventually(is_deleted, within_s=10)
    left = await whole_ledger(ledger)
    assert [run_id for run_id in run_ids if run_id in left] == []
    assert [fact.type for fact in await told(ground, session)] == ["session.deleted"]


async def test_two_gateways_delete_many_pages_once(
    ground: Ground, gateway: ServiceProcess, product: httpx.AsyncClient, ledger: asyncpg.Pool, session: str
) -> None:
    run_id = await submit(product, session_id=session)
    await ledger.execute(
        "INSERT INTO ledger.runs (run_id, tenant_id, user_id, session_id, plan, timeout_s)"
        " SELECT run_id || '_' || number, tenant_id, user_id, session_id, plan, timeout_s"
        " FROM ledger.runs, generate_series(1, 170) number WHERE run_id = $1",
        run_id,
    )
    async with running(second := ground.gateway("second")), ground.client(second, tenant="x") as there:
        there.headers["Caisson-Tenant"] = product.headers["Caisson-Tenant"]
        await asyncio.gather(*(delete(client, session) for client in (product, there) for _ in range(3)))
        await until_gone(there, session)
    removed = await ledger.fetchval("SELECT removed FROM ledger.sessions WHERE session_id = $1", session)
    assert removed["runs"] == 171
    assert len(await eventually(lambda: told(ground, session))) == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [("ses_00000000000000000000000000", "of nobody"), ("x" * 200, "too long to be one"), ("%00", "no id at all")],
)
async def test_another_tenants_session_is_as_unknown_as_one_that_never_was(
    ground: Ground, gateway: ServiceProcess, product: httpx.AsyncClient, session: str, path: str, reason: str
) -> None:
    async with ground.client(gateway, tenant="another") as other:
        foreign = await other.delete(f"/v1/sessions/{session}")
        unknown = await other.delete("/v1/sessions/ses_00000000000000000000000001")
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        assert foreign.status_code == 404
        assert (await other.delete(f"/v1/sessions/{path}")).status_code in {404, 422}, reason
    assert (await product.get(f"/v1/sessions/{session}")).json()["deleting_at"] is None


async def test_a_gateway_that_is_killed_in_the_middle_leaves_what_the_next_one_finishes(plane: Plane) -> None:
    made = await plane.product.post("/v1/sessions", json={})
    session = str(made.json()["id"])
    queued = await submit(plane.product, session_id=session)
    async with open_ledger(plane.ground.database_url) as ledger:
        await ledger.execute(
            "INSERT INTO ledger.runs (run_id, tenant_id, user_id, session_id, status, finished_at, plan, timeout_s)"
            " SELECT run_id || '_' || number, tenant_id, user_id, session_id, 'succeeded', now(), plan, timeout_s"
            " FROM ledger.runs, generate_series(1, 3000) number WHERE run_id = $1",
            queued,
        )
        assert await delete(plane.product, session) == 202
        assert plane.gateway.process is not None
        plane.gateway.process.kill()
        await plane.gateway.process.wait()
        left = await ledger.fetchval("SELECT count(*) FROM ledger.runs WHERE session_id = $1", session)
        assert 0 < left < 3001, "in the middle"
        await plane.gateway.start()
        await eventually(plane.is_ready, within_s=20)
        await until_gone(plane.product, session)
        removed = await ledger.fetchval("SELECT removed FROM ledger.sessions WHERE session_id = $1", session)
        assert removed["runs"] == 3001
    assert len(await eventually(lambda: told(plane.ground, session), within_s=10)) == 1
