"""One run's room: its workspace and network, and a box for each of its commands.

Invariant: a box has every mechanism or does not start; a room that is left has left nothing behind.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

import structlog

from caisson.common.outcome import NotStarted, Outcome, Output
from caisson.runner.adapters.bubblewrap import Programs, inner_arguments, mount_arguments, outer_arguments
from caisson.runner.adapters.hierarchies import Cgroups
from caisson.runner.adapters.namespaces import Namespace
from caisson.runner.adapters.processes import BoxProcess, Traces
from caisson.runner.adapters.workspaces import Workspace
from caisson.runner.domain.accounting import Ending, KillCause, outcome_of
from caisson.runner.domain.boxes import BoxCommand, BoxResult, LiveOutput, Place, Refusal

_KIB: Final = 1 << 10
_SAID_CHARS: Final = 400

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What every box of a runner is made with."""

    programs: Programs
    rootfs: Path
    filter: Path
    cgroups: Cgroups


class HostRoom:
    """A room on this host. `undo` removes what was made for it; `doubt` is called when a box could not be set up."""

    def __init__(
        self,
        equipment: Equipment,
        place: Place,
        *,
        namespace: Namespace,
        workspace: Workspace,
        undo: AsyncExitStack,
        doubt: Callable[[], None],
    ) -> None:
        self._equipment = equipment
        self._place = place
        self._namespace = namespace
        self._workspace = workspace
        self._undo = undo
        self._doubt = doubt
        self.mounts = mount_arguments(equipment.rootfs, workspace.path, workspace.identity, place.limits)
        self._running: dict[asyncio.Task[BoxResult], BoxProcess] = {}

    async def execute(self, command: BoxCommand, live: LiveOutput) -> BoxResult:
        """Run one command in a new box."""
        started_at = perf_counter()
        try:
            process = self._start(command, live)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            return self._never_ran(NotStarted(reason=f"the box could not be set up: {reason}"), str(error))
        settling = asyncio.create_task(self._settle(process, command, started_at))
        self._running[settling] = process
        settling.add_done_callback(self._running.pop)
        try:
            return await asyncio.shield(settling)
        except asyncio.CancelledError:
            process.kill(KillCause.CANCEL)
            await asyncio.wait((settling,))
            raise

    def cancel(self) -> None:
        """Kill the running command, if any."""
        for process in self._running.values():
            process.kill(KillCause.CANCEL)

    async def leave(self) -> None:
        """Kill what still runs and destroy workspace and namespace."""
        self.cancel()
        try:
            if self._running:
                await asyncio.wait(self._running.keys())
        finally:
            await self._undo.aclose()

    def _start(self, command: BoxCommand, live: LiveOutput) -> BoxProcess:
        limits = self._place.limits
        cgroup = self._equipment.cgroups.make()
        filter_fd = os.open(self._equipment.filter, os.O_RDONLY | os.O_CLOEXEC)
        try:
            cgroup.create(limits)
            outer = outer_arguments(self._equipment.programs, self._namespace.fd, cgroup.join_files, filter_fd)
            return BoxProcess(
                lambda report_fd: [*outer, *self.mounts, *inner_arguments(report_fd, self._place.uid, command)],
                passed=(self._namespace.fd, filter_fd),
                cgroup=cgroup,
                timeout_s=command.timeout_s,
                output_bytes=limits.output_kib * _KIB,
                live=live,
            )
        except BaseException:
            cgroup.remove()
            raise
        finally:
            os.close(filter_fd)

    async def _settle(self, process: BoxProcess, command: BoxCommand, started_at: float) -> BoxResult:
        traces = await process.finish()
        ended_at = perf_counter()
        outcome = self._outcome(traces, command)
        if isinstance(outcome, NotStarted):
            return self._never_ran(outcome, process.stderr.output().text)
        return BoxResult(
            outcome=outcome,
            stdout=process.stdout.output(),
            stderr=process.stderr.output(),
            duration_ms=(ended_at - started_at) * 1000,
            refused=await self._refused(),
        )

    def _outcome(self, traces: Traces, command: BoxCommand) -> Outcome:
        return outcome_of(
            Ending(
                report=traces.report,
                events=traces.events,
                disk_full=self._workspace.full(),
                killed_for=traces.killed_for,
                timeout_s=command.timeout_s,
                limits=self._place.limits,
            )
        )

    async def _refused(self) -> tuple[Refusal, ...]:
        try:
            return await self._namespace.refused()
        except OSError as error:  # the packets were refused all the same
            log.warning("namespace.counters_unreadable", error=str(error))
            return ()

    def _never_ran(self, outcome: NotStarted, said: str) -> BoxResult:
        log.error("box.not_started", reason=outcome.reason, said=said[-_SAID_CHARS:])
        self._doubt()
        return BoxResult(outcome=outcome, stdout=Output(), stderr=Output(), duration_ms=0, refused=())
