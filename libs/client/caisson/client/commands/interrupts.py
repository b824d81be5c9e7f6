"""Ctrl-C: the first asks for a cancel, the second leaves."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interruptible(on_first: Callable[[], None]) -> Iterator[None]:
    """Within the block, call `on_first` at the first SIGINT and cancel the current task at the next."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    presses = 0

    def pressed() -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            on_first()
        elif task is not None:
            task.cancel()

    loop.add_signal_handler(signal.SIGINT, pressed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
