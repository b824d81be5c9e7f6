"""The runner's private folder: the workspaces of its runs and what else its boxes mount.

Invariant: everything here is mounted in the runner's own mount namespace, so that the kernel removes it with the
runner; only an empty directory can be left, which the next runner to start removes.
"""

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from caisson.common.errors import Unavailable
from caisson.runner.adapters import linux
from caisson.runner.adapters.claims import claim, sweep
from caisson.runner.adapters.linux import Mount, mount, unmount

_INODES_PER_MIB: Final = 256
_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
_IDENTITY: Final = ".identity"
_PASSWD: Final = "tenant:x:{uid}:{uid}::/workspace:/bin/bash\nroot:x:0:0::/nonexistent:/usr/sbin/nologin\n"  # noqa: S105
_GROUP: Final = "tenant:x:{uid}:\nroot:x:0:\n"


class Workspace:
    """One run's files: a file system of their own, of limited size, that only the tenant's uid may enter."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity = path.parent / _IDENTITY

    def full(self) -> bool:
        """Say whether no block or no inode is free."""
        status = os.statvfs(self.path)
        return status.f_bfree == 0 or status.f_ffree == 0

    async def destroy(self) -> None:
        """Remove the workspace with all that is in it. The kernel waits for its readers when it unmounts: 1 ms."""
        await linux.in_thread(lambda: unmount(self.path))
        self.path.rmdir()
        tenant = self.path.parent
        if [path.name for path in tenant.iterdir()] == [_IDENTITY]:
            shutil.rmtree(tenant)


class Workspaces:
    """The folder of one runner: `<workspaces_dir>/<worker>`."""

    def __init__(self, directory: Path, worker: str) -> None:
        self._directory = directory
        self.own = directory / worker
        self._claim: int | None = None

    def start(self) -> None:
        """Take a private mount namespace, remove what dead runners left, and mount the runner's folder.

        Call in the thread that will start the boxes: a mount namespace belongs to a thread.

        Raises:
            Unavailable: the folder belongs to a living runner.
            OSError: not enough privileges, or the directory cannot be made.
        """
        linux.unshare(linux.CLONE_NEWNS)
        mount(None, Path("/"), None, Mount.RECURSIVE | Mount.SLAVE)
        self._claim = claim(self.own)
        sweep(self._directory, _remove_empty)
        mount("caisson", self.own, "tmpfs", Mount.NO_SUID | Mount.NO_DEVICES, "mode=0700,size=16m")
        (self.own / "tenants").mkdir(mode=0o700)

    def check(self) -> None:
        """Raise Unavailable unless the folder is still mounted."""
        if self._claim is None or not (self.own / "tenants").is_dir():
            raise Unavailable(f"workspaces: {self.own} is gone")

    def make(self, uid: int, run_id: str, disk_mib: int) -> Workspace:
        """Make an empty workspace.

        Raises:
            OSError: it exists, or the kernel refuses the mount.
            ValueError: the run id cannot name a directory.
        """
        if not _SAFE_NAME.fullmatch(run_id):
            raise ValueError("the run id cannot name a directory")
        path = self.own / "tenants" / str(uid) / run_id
        _ensure_identity(path.parent, uid)
        path.mkdir(mode=0o700)
        options = f"size={disk_mib}m,nr_inodes={disk_mib * _INODES_PER_MIB},mode=0700,uid={uid},gid={uid}"
        try:
            mount("workspace", path, "tmpfs", Mount.NO_SUID | Mount.NO_DEVICES, options)
        except OSError:
            path.rmdir()
            raise
        return Workspace(path)

    def close(self) -> None:
        """Unmount and remove the folder."""
        if self._claim is None:
            return
        with contextlib.suppress(OSError):  # not mounted yet
            unmount(self.own)
        _remove_empty(self.own)
        os.close(self._claim)
        self._claim = None


def _ensure_identity(tenant: Path, uid: int) -> None:
    """Make a tenant's directory, with the `passwd` and `group` that its boxes see."""
    identity = tenant / _IDENTITY
    if identity.is_dir():
        return
    tenant.mkdir(mode=0o700)
    identity.mkdir()
    (identity / "passwd").write_text(_PASSWD.format(uid=uid))
    (identity / "group").write_text(_GROUP.format(uid=uid))


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):  # a file here is none of ours: an operator should look at it
        directory.rmdir()
