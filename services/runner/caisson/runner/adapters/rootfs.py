"""The read-only system tree that every box of a runner starts from, put together once.

Invariant: it holds programs and public configuration only, every mount in it is read-only without set-uid, and
nothing in it differs from one tenant to another.
"""

import os
import shutil
import stat
from pathlib import Path
from textwrap import dedent
from typing import Final

from caisson.runner.adapters.linux import Mount, mount, unmount

INIT: Final = "/opt/caisson/caisson-box"
IDENTITY: Final = "/run/caisson"
"""Where the box's own `passwd` and `group` are mounted."""

_MIB: Final = 1 << 20
_DIRECTORIES: Final = (*("dev", "etc", "opt/caisson/bin", "proc", "run/caisson", "tmp", "usr", "var", "workspace"),)
_LINKS: Final = {
    "etc/group": f"{IDENTITY}/group",
    "etc/mtab": "/proc/self/mounts",
    "etc/passwd": f"{IDENTITY}/passwd",
    "var/run": "/run",
    "var/tmp": "/tmp",  # noqa: S108 - inside the box
}
_SYSTEM_DIRECTORIES: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_PUBLIC_CONFIGURATION: Final = (
    *("alternatives", "debian_version", "fonts", "gai.conf", "host.conf", "inputrc", "java*", "ld.so.cache"),
    *(
        "ld.so.conf*",
        "locale.alias",
        "localtime",
        "magic",
        "mime.types",
        "os-release",
        "perl",
        "protocols",
        "python3*",
    ),
    *("rpc", "services", "ssl", "terminfo", "timezone"),
)
"""Patterns of names in /etc that programs need and every user of the host may read."""

_CONFIGURATION: Final = {
    "etc/hostname": "caisson\n",
    "etc/hosts": "127.0.0.1 localhost caisson\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    # There is no resolver: the kernel refuses the query at once, and counts it.
    "etc/resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n",
}
_CURL: Final = dedent(
    """\
    #!/bin/sh
    # Tells the run's request id to the API and bounds the time of a request; what is given after wins.
    case "$1" in -q | --disable) first=-q; shift ;; esac
    exec /usr/bin/curl $first --max-time 30 ${REQUEST_ID:+-H "X-Request-Id: $REQUEST_ID"} "$@"
    """
)
_DEVICES: Final = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_DEVICE_LINKS: Final = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
_SEALED: Final = Mount.REMOUNT | Mount.BIND | Mount.READ_ONLY | Mount.NO_SUID


def build_rootfs(root: Path, source: Path, box_program: Path) -> None:
    """Mount the tree at `root`, with the programs of the system tree at `source`.

    Raises:
        OSError: a part of `source` is missing, or mounting is not permitted.
    """
    root.mkdir()
    mount("system", root, "tmpfs", Mount.NO_SUID | Mount.NO_DEVICES, "mode=0755,size=64m")
    for name in _DIRECTORIES:
        (root / name).mkdir(parents=True)
    for name, target in _LINKS.items():
        (root / name).symlink_to(target)
    _configure(root, source)
    _install(box_program, root / INIT.lstrip("/"))
    _make_devices(root / "dev")
    _bind_system(root, source)
    mount(None, root, None, _SEALED | Mount.NO_DEVICES)


def remove_rootfs(root: Path) -> None:
    """Unmount the tree."""
    unmount(root)


def _configure(root: Path, source: Path) -> None:
    for pattern in _PUBLIC_CONFIGURATION:
        for found in (source / "etc").glob(pattern):
            _copy_public(found, root / "etc" / found.name)
    for name, text in _CONFIGURATION.items():
        (root / name).write_text(text)
    curl = root / "opt/caisson/bin/curl"
    curl.write_text(_CURL)
    curl.chmod(0o755)


def _copy_public(source: Path, target: Path) -> None:
    """Copy what every user of the host may read; leave out the rest."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir() and _others_may(source, stat.S_IROTH | stat.S_IXOTH):
        target.mkdir()
        for child in source.iterdir():
            _copy_public(child, target / child.name)
    elif source.is_file() and _others_may(source, stat.S_IROTH):
        shutil.copyfile(source, target)


def _others_may(path: Path, mode: int) -> bool:
    return path.stat().st_mode & mode == mode


def _install(program: Path, target: Path) -> None:
    shutil.copyfile(program, target)
    target.chmod(0o755)


def _make_devices(directory: Path) -> None:
    mount("devices", directory, "tmpfs", Mount.NO_SUID | Mount.NO_EXEC, "mode=0755,size=64k")
    for name, numbers in _DEVICES.items():
        os.mknod(directory / name, stat.S_IFCHR, os.makedev(*numbers))
        (directory / name).chmod(0o666)
    for name, target in _DEVICE_LINKS.items():
        (directory / name).symlink_to(target)
    (directory / "shm").mkdir()
    mount(None, directory, None, _SEALED | Mount.NO_EXEC)


def _bind_system(root: Path, source: Path) -> None:
    _bind(source / "usr", root / "usr")
    for name in _SYSTEM_DIRECTORIES:
        if (source / name).is_symlink():
            (root / name).symlink_to((source / name).readlink())
        elif (source / name).is_dir():
            (root / name).mkdir()
            _bind(source / name, root / name)


def _bind(source: Path, target: Path) -> None:
    mount(source, target, None, Mount.BIND)
    mount(None, target, None, _SEALED | Mount.NO_DEVICES)
