"""A runner in this process, between a real bus with a scripted ledger and rooms without a host."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest

from caisson.common.bus import Bus
from caisson.common.process import Process
from caisson.runner.adapters.inspector import Inspector
from caisson.runner.app import Runner, new_worker_id
from caisson.runner.settings import RunnerSettings
from caisson.stack.nats import EmbeddedNats
from tests.support.fake_rooms import FakeRooms
from tests.support.scripted_ledger import ScriptedLedger, scripted_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A running runner and what surrounds it."""

    runner: Runner
    rooms: FakeRooms
    ledger: ScriptedLedger
    bus: Bus

    async def failing(self) -> dict[str, str]:
        """Return the readiness checks that fail."""
        reasons: dict[str, str] = {}
        for name, check in self.runner.checks.items():
            try:
                await check()
            except Exception as error:
                reasons[name] = str(error)
        return reasons

    async def drains(self) -> bool:
        """Say whether the runner has begun to drain."""
        return "draining" in await self.failing()


StartBench = Callable[..., Awaitable[Bench]]


@pytest.fixture(scope="session")
async def inspector() -> AsyncIterator[Inspector]:
    async with Inspector.started() as started:
        yield started


@pytest.fixture
async def ledger(nats: EmbeddedNats) -> AsyncIterator[ScriptedLedger]:
    async with scripted_ledger(nats.url, nats.passwords["gateway"]) as scripted:
        yield scripted


@pytest.fixture
async def start(nats: EmbeddedNats, ledger: ScriptedLedger, inspector: Inspector) -> AsyncIterator[StartBench]:
    """Start a runner with the given settings; polling is slow enough never to matter unless a test asks for it."""
    async with AsyncExitStack() as stack:

        async def begin(*, rooms: FakeRooms | None = None, **told: object) -> Bench:
            values = {"poll_s": 60.0, "heartbeat_s": 0.1, "drain_s": 0.0, "channel_key": "k"} | told
            settings = RunnerSettings.model_validate(
                {"nats_url": nats.url, "nats_password": nats.passwords["runner"], **values}
            )
            return await stack.enter_async_context(_running(settings, rooms or FakeRooms(), ledger, inspector))

        yield begin


@asynccontextmanager
async def _running(
    settings: RunnerSettings, rooms: FakeRooms, ledger: ScriptedLedger, inspector: Inspector
) -> AsyncIterator[Bench]:
    process = Process()
    bus = Bus(settings, service="runner", on_closed=process.fail)
    runner = Runner(settings, new_worker_id(settings.name), bus=bus, rooms=rooms, guards=inspector)
    await bus.start()
    await runner.listen()
    for name, loop in runner.loops.items():
        process.spawn(name, loop)
    try:
        yield Bench(runner=runner, rooms=rooms, ledger=ledger, bus=bus)
        await runner.drain()
    finally:
        await process.close()
        await bus.stop()
