"""Supervised processes, grouped by what they are, and the control over them that tests and operators need."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import structlog

from caisson.stack.children import StackError
from caisson.stack.keeper import Keeper, Part
from caisson.stack.service_process import ServiceProcess

READY_WITHIN_S = 60

log = structlog.get_logger(__name__)


def _nobody() -> None:
    """Nobody wants to know of changes."""


class Supervisor:
    """Keeps processes alive. `stop_order` names the groups, those to be stopped together side by side.

    `on_change` is called after a process was restarted or added: process ids and addresses may differ.
    """

    def __init__(self, stop_order: Sequence[Sequence[str]]) -> None:
        self.on_change: Callable[[], None] = _nobody
        self._stop_order = stop_order
        self._keepers: dict[str, list[Keeper]] = {name: [] for names in stop_order for name in names}

    def pids(self, name: str) -> list[int]:
        """Return the live process ids of a group."""
        return [keeper.pid for keeper in self._keepers[name] if keeper.pid is not None]

    async def ready(self, *, within_s: float = READY_WITHIN_S) -> None:
        """Wait until every process is ready: use it after a kill.

        Raises:
            StackError: naming those that are not ready in time.
        """
        keepers = [keeper for group in self._keepers.values() for keeper in group]
        try:
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(keeper.ready() for keeper in keepers))
        except TimeoutError:
            late = ", ".join(keeper.name for keeper in keepers if not keeper.is_ready)
            raise StackError(f"not ready within {within_s} s: {late}") from None

    async def kill(self, name: str, index: int = 0, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to one process. One that ends by it is started again, unlike after `stop_service`."""
        await self._keepers[name][index].kill(number)

    async def stop_service(self, name: str) -> None:
        """Stop every process of a group in an orderly way, until `start_service`."""
        await asyncio.gather(*(keeper.stop() for keeper in self._keepers[name]))

    async def start_service(self, name: str) -> None:
        """Start what `stop_service` stopped, on the ports it had."""
        await together(keeper.start(within_s=READY_WITHIN_S) for keeper in self._keepers[name])
        self._changed()

    async def restart(self, name: str) -> None:
        """Stop and start every process of a group."""
        await self.stop_service(name)
        await self.start_service(name)

    def services(self, name: str | None = None) -> list[ServiceProcess]:
        """Return the service processes of one group, or of all."""
        groups = self._keepers.values() if name is None else [self._keepers[name]]
        return [keeper.part for group in groups for keeper in group if isinstance(keeper.part, ServiceProcess)]

    async def keep(self, group: str, name: str, part: Part) -> None:
        """Start a part and keep it alive from now on."""
        keeper = Keeper(name, part, on_restarted=self._changed)
        self._keepers[group].append(keeper)
        await keeper.start(within_s=READY_WITHIN_S)

    async def stop_all(self) -> None:
        """Stop every group in its turn, whatever happens to the one before."""
        for names in self._stop_order:
            stops = (keeper.stop() for name in names for keeper in self._keepers[name])
            for failure in await asyncio.gather(*stops, return_exceptions=True):
                if failure is not None:
                    log.error("child.stop_failed", reason=repr(failure))
        for keepers in self._keepers.values():
            keepers.clear()

    def _changed(self) -> None:
        self.on_change()


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all at once; the first failure cancels the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
