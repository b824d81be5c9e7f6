"""This host's ability to make rooms: set up once, proven again and again by a box that looks at itself.

Invariant: no room is made on a host whose last proof failed; `check` says which mechanism is missing.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Final

import structlog

from caisson.common.channel import write_preamble
from caisson.common.errors import CaissonError, Unavailable
from caisson.common.ids import new_id
from caisson.runner.adapters.bridge import Bridge
from caisson.runner.adapters.bubblewrap import find_programs
from caisson.runner.adapters.hierarchies import Cgroups, find_hierarchy
from caisson.runner.adapters.namespaces import NamespacePool
from caisson.runner.adapters.rooms import Equipment, HostRoom
from caisson.runner.adapters.rootfs import build_rootfs, remove_rootfs
from caisson.runner.adapters.seccomp import write_filter
from caisson.runner.adapters.workspaces import Workspaces
from caisson.runner.domain.boxes import Place
from caisson.runner.domain.proving import PROBE, probe_place, unproven
from caisson.runner.settings import RunnerSettings

FIRST_TENANT_UID: Final = 10_000
_PROOF_VALID_S: Final = 60.0

log = structlog.get_logger(__name__)


class HostRooms:
    """Rooms on this host, for one event loop in a thread that lives as long as the process."""

    def __init__(self, settings: RunnerSettings) -> None:
        self._settings = settings
        self._name = new_id("host")
        self._workspaces = Workspaces(settings.workspaces_dir, self._name)
        self._namespaces = NamespacePool(settings.warm_namespaces)
        self._equipment: Equipment | None = None
        self._undo = AsyncExitStack()
        self._proven_at: float | None = None
        self._fault: str | None = "the sandbox has not been set up"
        self._checking = asyncio.Lock()

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, settings: RunnerSettings) -> AsyncIterator["HostRooms"]:
        """Set up the host, for as long as the context lasts."""
        rooms = cls(settings)
        await rooms.start()
        try:
            yield rooms
        finally:
            await rooms.close()

    async def start(self) -> None:
        """Set up every mechanism and prove them. A failure is not raised: `check` tells it, and tries again."""
        with contextlib.suppress(CaissonError):
            await self.check()

    async def close(self) -> None:
        """Remove everything. Every room must have been left."""
        self._fault = "the sandbox is closed"
        self._equipment = None
        await self._undo.aclose()

    async def check(self) -> None:
        """Raise Unavailable, naming the mechanism, unless rooms can be made on this host."""
        async with self._checking:
            try:
                await self._check()
            except CaissonError as error:
                if self._fault != error.detail:
                    log.warning("sandbox.unavailable", reason=error.detail)
                self._fault = error.detail
                raise
            self._fault = None

    async def enter(self, place: Place) -> HostRoom:
        """Make a room.

        Raises:
            Unavailable: a mechanism of the host failed; the reason names it.
        """
        if self._fault is not None or self._equipment is None:
            raise Unavailable(self._fault or "the sandbox has not been set up")
        if place.uid < FIRST_TENANT_UID:
            raise Unavailable(f"uid {place.uid} is not a tenant's")
        return await self._make_room(self._equipment, place)

    async def _check(self) -> None:
        if self._equipment is None:
            self._equipment = await self._set_up()
        self._equipment.programs.check()
        self._equipment.cgroups.check()
        self._workspaces.check()
        self._namespaces.check()
        if self._proven_at is None or monotonic() - self._proven_at > _PROOF_VALID_S:
            await self._prove(self._equipment)
            self._proven_at = monotonic()

    async def _prove(self, equipment: Equipment) -> None:
        room = await self._make_room(equipment, probe_place(new_id("probe")))
        try:
            missing = unproven(await room.execute(PROBE, lambda *_: None))
        finally:
            await room.leave()
        if missing:
            raise Unavailable(f"the sandbox does not confine: {'; '.join(missing)}")

    def _doubt(self) -> None:
        self._proven_at = None

    async def _set_up(self) -> Equipment:
        if os.geteuid() != 0:
            raise Unavailable("the isolation tenant-uid needs root")
        os.umask(0o022)  # what boxes mount must be readable inside
        programs = find_programs()
        async with AsyncExitStack() as undo:
            self._workspaces = Workspaces(self._settings.workspaces_dir, self._name)
            undo.callback(self._workspaces.close)
            with _mechanism("workspaces"):
                self._workspaces.start()
            rootfs, filter_file = self._workspaces.own / "rootfs", self._workspaces.own / "seccomp.bpf"
            undo.callback(remove_rootfs, rootfs)
            with _mechanism("root file system"):
                build_rootfs(rootfs, self._settings.rootfs_dir, Path(programs.box))
            write_filter(filter_file)
            cgroups = self._start_cgroups(undo)
            self._namespaces = NamespacePool(self._settings.warm_namespaces)
            undo.push_async_callback(self._namespaces.close)
            with _mechanism("network namespace"):
                await self._namespaces.start()
            self._undo = undo.pop_all()
        return Equipment(programs=programs, rootfs=rootfs, filter=filter_file, cgroups=cgroups)

    def _start_cgroups(self, undo: AsyncExitStack) -> Cgroups:
        with _mechanism("cgroup"):
            hierarchy = find_hierarchy(
                Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()
            )
            cgroups = Cgroups(hierarchy, self._name)
            undo.callback(cgroups.close)
            cgroups.start()
        return cgroups

    async def _make_room(self, equipment: Equipment, place: Place) -> HostRoom:
        preamble = write_preamble(place.request_id, self._settings.channel_key.get_secret_value().encode())
        async with AsyncExitStack() as undo:
            namespace = await self._namespaces.take()
            undo.callback(namespace.close)
            with _mechanism("workspace"):
                workspace = self._workspaces.make(place.uid, place.run_id, place.limits.disk_mib)
            undo.push_async_callback(workspace.destroy)
            bridge = Bridge(
                namespace.listener,
                host=self._settings.proxy_host,
                port=self._settings.proxy_port,
                preamble=preamble,
            )
            bridge.start()
            undo.push_async_callback(bridge.close)
            return HostRoom(
                equipment, place, namespace=namespace, workspace=workspace, undo=undo.pop_all(), doubt=self._doubt
            )


@contextlib.contextmanager
def _mechanism(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unavailable(f"{name}: {error}") from error
