"""The account that PostgreSQL runs as where the stack is started by root: PostgreSQL refuses to be root."""

import os
import pwd
import stat
import subprocess
from pathlib import Path

from caisson.stack.children import StackError

ACCOUNT = "caisson-postgres"


def server_account() -> str | None:
    """Return the account's name, made on first use; None where the stack is not root and everything is its own.

    Raises:
        StackError: when the account cannot be made.
    """
    if os.geteuid() != 0:
        return None
    if not _exists():
        flags = ("--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin")
        command = ("/usr/sbin/useradd", *flags, ACCOUNT)
        made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - constants only
        if not _exists():  # another process may have made it at the same moment
            raise StackError(f"the account {ACCOUNT} cannot be made: {made.stderr.strip()}")
    return ACCOUNT


def hand_over(path: Path, account: str | None) -> None:
    """Make `path` the account's own."""
    if account is not None:
        entry = pwd.getpwnam(account)
        os.chown(path, entry.pw_uid, entry.pw_gid, follow_symlinks=False)


def let_pass(path: Path) -> None:
    """Let other accounts pass through (not read) the folders above `path`."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(mode | stat.S_IXOTH)


def _exists() -> bool:
    try:
        pwd.getpwnam(ACCOUNT)
    except KeyError:
        return False
    return True
