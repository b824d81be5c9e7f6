"""Readiness is progress: a loop that has not come round in time is not ready, whatever its connection says."""

import asyncio
import re

import httpx
import pytest

from caisson.common.errors import Unavailable
from caisson.common.health import Health, Progress


async def ask(checks: Health, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(app=checks.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://probe") as client:
        return await client.get(path)


async def test_a_loop_is_unready_before_it_started_ready_when_it_ticks_and_unready_when_it_stands() -> None:
    now_s = 100.0
    progress = Progress("relay", limit_s=5, clock=lambda: now_s)
    with pytest.raises(Unavailable, match="relay has not started"):
        await progress.check()
    progress.tick()
    now_s += 5
    await progress.check()
    now_s += 0.1
    with pytest.raises(Unavailable, match="silent for 5"):
        await progress.check()
    progress.tick()
    await progress.check()


async def test_readiness_names_each_failing_check_and_why() -> None:
    checks = Health()

    async def good() -> None:
        """All is well."""

    async def away() -> None:
        raise Unavailable("NATS is not connected")

    async def broken() -> None:
        raise KeyError("row")

    for name, check in (("database", good), ("bus", away), ("outbox", broken)):
        checks.add(name, check)
    answer = await ask(checks, "/readyz")
    assert answer.status_code == 503
    assert answer.json()["failing"] == {"bus": "NATS is not connected", "outbox": "KeyError: 'row'"}
    assert (await ask(checks, "/healthz")).json() == {"status": "ok"}, "the process turns all the same"


async def test_a_check_that_hangs_is_a_failure() -> None:
    checks = Health(check_timeout_s=0.05)

    async def hang() -> None:
        await asyncio.Event().wait()

    checks.add("database", hang)
    assert await checks.failures() == {"database": "no answer in 0.05 s"}


async def test_metrics_are_in_the_text_format_of_prometheus() -> None:
    answer = await ask(Health(), "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert re.search(r"^caisson_security_stale_fence_total \d+\.0$", answer.text, re.MULTILINE)
