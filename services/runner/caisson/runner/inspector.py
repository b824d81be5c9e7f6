"""`python -m caisson.runner.inspector`: a process that reads commands, and that may die of one.

The parser is C and reads what tenants wrote. So it runs here: as nobody, without files, sockets or children, within a
limit of memory and of time per command, answering one length-prefixed JSON request after another.
"""

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from dataclasses import asdict
from typing import Any, Final

from caisson.runner.domain.guards.decision import Blocked, Trusted
from caisson.runner.domain.guards.inspection import inspect, inspect_raw

_NOBODY: Final = 65534
_MEMORY_BYTES: Final = 512 << 20
_LONGEST_S: Final = 10
_SET_NO_NEW_PRIVILEGES: Final = 38
_SET_DUMPABLE: Final = 4
_LENGTH: Final = struct.Struct("!I")


def main() -> None:
    """Answer requests until the input ends."""
    inspect("true", Trusted(tenant_id="-", datasets=(), environment={}))
    _give_up_privileges()
    _write({"ready": True})
    while (request := _read()) is not None:
        signal.alarm(_LONGEST_S)
        _write(_answer(request))
        signal.alarm(0)


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    trusted = Trusted(
        tenant_id=request["tenant_id"],
        datasets=tuple(request["datasets"]),
        environment=request["environment"],
        hidden=tuple(request["hidden"]),
    )
    decision = (inspect_raw if request["raw"] else inspect)(request["command"], trusted)
    return asdict(decision) if isinstance(decision, Blocked) else {}


def _give_up_privileges() -> None:
    """Keep nothing but the two pipes. Signals from a terminal are the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def _read() -> dict[str, Any] | None:
    header = sys.stdin.buffer.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        return None
    request: dict[str, Any] = json.loads(sys.stdin.buffer.read(_LENGTH.unpack(header)[0]))
    return request


def _write(answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    sys.stdout.buffer.write(_LENGTH.pack(len(body)) + body)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
