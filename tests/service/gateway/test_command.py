"""`python -m caisson.gateway`: the first key, a refusal in one line, and an orderly end."""

import asyncio
import secrets
import subprocess
import sys
from collections.abc import Awaitable, Callable

from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground, client
from tests.support.plane import Plane
from tests.support.product import submit
from tests.support.sse import events_of


async def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "caisson.gateway", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


async def test_the_first_key_is_printed_once_and_works(ground: Ground, gateway: ServiceProcess) -> None:
    made = await run(ground.environment(), "keys", "create", "--platform", "the product")
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    assert key.startswith("csn_")
    assert key not in made.stderr
    async with client(gateway, key, tenant="acme", user="u-1") as product:
        assert await submit(product)


async def test_a_gateway_that_is_told_too_little_says_what_in_one_line_without_values(ground: Ground) -> None:
    environment = ground.environment(GATEWAY_NATS_PASSWORD="change-me", GATEWAY_LEASE_S="soon")
    del environment["GATEWAY_DATABASE_URL"]
    refused = await run(environment)
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.splitlines()
    for told in ("GATEWAY_NATS_PASSWORD", "GATEWAY_LEASE_S", "GATEWAY_DATABASE_URL"):
        assert told in line
    assert "soon" not in line


async def test_a_gateway_that_is_asked_to_stop_ends_its_streams_and_itself(plane: Plane) -> None:
    run_id = await submit(plane.product)
    async with events_of(plane.product, run_id) as reader:
        await reader.next()
        sent, trace = sending()
        held = plane.product.get(f"/v1/runs/{run_id}", params={"wait_s": 60}, extensions={"trace": trace})
        waiting = asyncio.create_task(held)
        await sent.wait()
        key = {"Idempotency-Key": secrets.token_hex()}
        exec_sent, told = sending()
        unfinished = asyncio.create_task(
            plane.product.post("/v1/exec", json={"command": "true"}, headers=key, extensions={"trace": told})
        )
        await exec_sent.wait()
        stopping = asyncio.create_task(plane.gateway.stop())
        assert [event.type for event in await asyncio.wait_for(reader.rest(), 4)] == ["run.queued"]
        assert (await waiting).json()["status"] == "queued"
        refused = await unfinished
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable"), (
            "an unfinished step is no answer"
        )
        assert refused.headers["retry-after"]
        await asyncio.wait_for(stopping, 8)
    assert plane.gateway.process is not None
    assert plane.gateway.process.returncode == 0


def sending() -> tuple[asyncio.Event, Callable[[str, object], Awaitable[None]]]:
    """Return an event that is set once a request is sent, and what httpx must call for that."""
    sent = asyncio.Event()

    async def trace(step: str, _: object) -> None:
        if step == "http11.send_request_body.complete":
            sent.set()

    return sent, trace
