"""The composition root of the runner."""

import secrets
from collections.abc import Awaitable, Callable

import structlog

from caisson.common.bus import Bus
from caisson.common.health import Health, Progress
from caisson.common.process import Process
from caisson.runner import metrics
from caisson.runner.adapters.host import HostRooms
from caisson.runner.adapters.inspector import Inspector
from caisson.runner.adapters.ledger import BusLedger
from caisson.runner.adapters.live import BusLive
from caisson.runner.domain.boxes import Rooms
from caisson.runner.domain.guards.decision import Guards
from caisson.runner.handlers import Doorbells
from caisson.runner.loops.claiming import Claiming
from caisson.runner.loops.draining import drain
from caisson.runner.loops.heartbeat import Heartbeat
from caisson.runner.loops.holdings import HeldRun, Holdings
from caisson.runner.loops.host import HostWatch
from caisson.runner.loops.working import RunWork
from caisson.runner.settings import RunnerSettings

_SLOTS_PER_RESERVED = 8
_SILENT_INTERVALS = 5
_SILENT_AT_LEAST_S = 10.0

log = structlog.get_logger(__name__)


class Runner:
    """Everything of one worker but its process: loops to spawn, checks to publish, and an orderly end."""

    def __init__(self, settings: RunnerSettings, worker_id: str, *, bus: Bus, rooms: Rooms, guards: Guards) -> None:
        self._settings = settings
        self._bus = bus
        self._ledger = BusLedger(bus)
        self._live = BusLive(bus)
        self._holdings = Holdings(slots=settings.slots, on_free=self._ring)
        self._host = HostWatch(rooms, guards, on_able=self._ring)
        self._heartbeat = Heartbeat(
            worker_id=worker_id,
            interval_s=settings.heartbeat_s,
            ledger=self._ledger,
            holdings=self._holdings,
            progress=(beats := _progress("the heartbeat", settings.heartbeat_s)),
        )
        self._claiming = Claiming(
            worker_id=worker_id,
            poll_s=settings.poll_s,
            reserve=settings.slots // _SLOTS_PER_RESERVED,
            ledger=self._ledger,
            holdings=self._holdings,
            host=self._host,
            begin=self._begin,
            progress=(claims := _progress("the claim loop", settings.poll_s)),
        )
        self._doorbells = Doorbells(on_work=self._ring, on_cancel=self._heartbeat.wake)
        self._work = RunWork(
            ledger=self._ledger,
            rooms=rooms,
            guards=guards,
            live=self._live,
            hidden=(str(settings.workspaces_dir),),
        )
        self.checks: dict[str, Callable[[], Awaitable[None]]] = {
            "bus": bus.check,
            "sandbox": self._host.check,
            "claims": claims.check,
            "heartbeat": beats.check,
            "draining": self._claiming.check,
        }
        self.loops: dict[str, Callable[[], Awaitable[None]]] = {
            "host": self._host.run,
            "heartbeat": self._heartbeat.run,
            "claiming": self._claiming.run,
            "live": self._live.run,
        }

    async def listen(self) -> None:
        """Subscribe to the doorbells. The bus must be connected."""
        await self._doorbells.subscribe(self._bus)

    async def drain(self) -> None:
        """Take nothing more, finish or give back what is held. The loops must still run."""
        await drain(
            claiming=self._claiming,
            holdings=self._holdings,
            ledger=self._ledger,
            within_s=self._settings.drain_s,
        )

    def _ring(self) -> None:
        self._claiming.ring()

    def _begin(self, held: HeldRun) -> None:
        self._holdings.add(held, lambda: self._work.work(held))


async def serve(settings: RunnerSettings) -> None:
    """Run one worker until it is told to end."""
    metrics.ISOLATION.info({"isolation": settings.isolation})
    worker_id = new_worker_id(settings.name)
    process = Process()
    health = Health()
    bus = Bus(settings, service="runner", on_closed=process.fail)
    rooms = HostRooms(settings)
    async with Inspector.started() as guards:
        runner = Runner(settings, worker_id, bus=bus, rooms=rooms, guards=guards)
        for name, check in runner.checks.items():
            health.add(name, check)
        await process.listen("admin", health.application(), settings.admin_host, settings.admin_port)
        await bus.start()
        await runner.listen()
        for name, loop in runner.loops.items():
            process.spawn(name, loop)
        log.info("worker.started", worker=worker_id, slots=settings.slots, isolation=settings.isolation)
        process.announce(settings.admin_port_file)
        try:
            await process.run_until_stopped()
            await runner.drain()
        finally:
            try:
                await process.close()
            finally:
                await bus.stop()
                await rooms.close()


def new_worker_id(name: str) -> str:
    """Return an id that no other process start has, whatever its name."""
    return f"{name}-{secrets.token_hex(8)}"


def _progress(name: str, interval_s: float) -> Progress:
    return Progress(name, limit_s=max(_SILENT_AT_LEAST_S, _SILENT_INTERVALS * interval_s))
