"""The engine's process: answers calls on the socket that it was started with, and ends when that closes.

Invariant: it holds no setting and no secret, and outlives neither the service nor a panic of the engine.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, BinaryIO, Final

from caisson.common.errors import CaissonError, Unavailable
from caisson.memory.adapters.qdrant_edge.engine import Engine
from caisson.memory.adapters.qdrant_edge.wire import LENGTH, Answer, Call, framed, opened

_BESIDE: Final = {"write": "write", "remove": "write", "close": "write", "optimize": "copy"}
"""What has a thread of its own, by its name. The engine searches one at a time, so whoever reads the call asks it."""
_SWITCH_S: Final = 0.001


class Program:
    """One thread reads calls and searches; writes in their order, and copies, have threads of their own."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sending = Lock()
        self._threads = {name: ThreadPoolExecutor(1) for name in _BESIDE.values()}

    def serve(self) -> None:
        """Open the engine as the first call says, then answer the others until the service is gone."""
        calls = self._channel.makefile("rb")
        engine: Engine | None = None
        while (call := _next(calls)) is not None:
            if engine is None:
                engine = self._answer(call, Engine.open, tell=False)
            elif beside := _BESIDE.get(call.name):
                self._threads[beside].submit(self._answer, call, getattr(engine, call.name))
            else:
                self._answer(call, getattr(engine, call.name))

    def _answer(self, call: Call, method: Callable[..., Any], *, tell: bool = True) -> Any:
        try:
            result = method(*call.arguments)
            self._send(Answer(call.number, result if tell else None))
        except CaissonError as error:
            self._send(Answer(call.number, error.detail, error.code))
        except Exception as error:  # the engine raises bare exceptions
            self._send(Answer(call.number, f"the embedded index failed: {error}", Unavailable.code))
        except BaseException:  # a panic of the engine is no Exception, and leaves it half done
            os._exit(1)
        else:
            return result
        return None

    def _send(self, answer: Answer) -> None:
        with self._sending:
            try:
                self._channel.sendall(framed(answer))
            except OSError:
                os._exit(0)


def main() -> None:
    """Serve until the service closes its end; what signals ask for comes from there as well."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.setswitchinterval(_SWITCH_S)
    Program(socket.socket(fileno=int(sys.argv[1]))).serve()
    # Without waiting for the threads: the log of the engine has all that was acknowledged.
    os._exit(0)


def _next(calls: BinaryIO) -> Call | None:
    """Return the next call, None where the service is gone: closed, or killed with an answer unread."""
    try:
        head = calls.read(LENGTH.size)
        body = calls.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""
    except ConnectionError:
        return None
    return opened(body) if body else None


if __name__ == "__main__":
    main()
