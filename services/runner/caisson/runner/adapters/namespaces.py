"""Network namespaces: loopback only, with the bridge's listener and the packet rules; made ahead of need.

Invariant: a namespace serves one run and is never given out again.
"""

import asyncio
import fcntl
import os
import socket
import struct
from collections import Counter, deque
from pathlib import Path
from typing import Final

import structlog

from caisson.common.errors import Unavailable
from caisson.runner.adapters import linux, netlink, nftables
from caisson.runner.domain.boxes import Refusal
from caisson.runner.domain.layout import BRIDGE_ADDRESS, BRIDGE_PORT

_SET_INTERFACE_FLAGS: Final = 0x8914
_UP_AND_RUNNING: Final = 0x41
_BACKLOG: Final = 128
_PATIENCE_S: Final = 5.0
_RETRY_S: Final = 1.0

log = structlog.get_logger(__name__)


class Namespace:
    """One run's network: the namespace, the listener inside it, and a socket to its packet filter."""

    def __init__(self, fd: int, listener: socket.socket, netfilter: socket.socket) -> None:
        self.fd = fd
        self.listener = listener
        self._netfilter = netfilter
        self._total = 0
        self._seen: Counter[str] = Counter()

    async def refused(self) -> tuple[Refusal, ...]:
        """Return what the rules refused since the last call. Costs one message to the kernel when that is nothing.

        Raises:
            OSError: the kernel's counters cannot be read.
        """
        total = netlink.read_counter(self._netfilter, nftables.TABLE, nftables.REFUSED)
        if total == self._total:
            return ()
        seen = await linux.in_thread(self._read_destinations)
        new = seen - self._seen
        unnamed = total - self._total - new.total()
        if unnamed > 0:  # neither TCP nor UDP, or more destinations than are kept
            new["other destinations"] = unnamed
        self._total, self._seen = total, seen
        return tuple(Refusal(destination=where, packets=packets) for where, packets in new.most_common())

    def _read_destinations(self) -> Counter[str]:
        linux.enter_namespace(self.fd, linux.CLONE_NEWNET)
        return nftables.read_refused()

    def close(self) -> None:
        """Give the namespace up: the kernel removes it with its last process."""
        self.listener.close()
        self._netfilter.close()
        os.close(self.fd)


def make_namespace() -> Namespace:
    """Put the calling thread into a new network namespace and return it. The thread should end soon.

    Raises:
        OSError: naming what the kernel refused.
    """
    linux.unshare(linux.CLONE_NEWNET)
    _start_loopback()
    netlink.add_default_route(socket.AF_INET, socket.inet_aton(BRIDGE_ADDRESS))
    if Path("/proc/thread-self/net/if_inet6").exists():
        netlink.add_default_route(socket.AF_INET6)
    nftables.load_rules()
    listener = socket.create_server((BRIDGE_ADDRESS, BRIDGE_PORT), backlog=_BACKLOG)
    listener.settimeout(0)
    fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    return Namespace(fd, listener, netlink.open_netfilter())


def _start_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("16sH22x", b"lo", _UP_AND_RUNNING))


class NamespacePool:
    """Namespaces ready for the next runs, refilled in the background."""

    def __init__(self, warm: int) -> None:
        self._warm = warm
        self._ready: deque[Namespace] = deque()
        self._added = asyncio.Event()
        self._taken = asyncio.Event()
        self._refilling: asyncio.Task[None] | None = None
        self._closing = False
        self._fault: str | None = None

    async def start(self) -> None:
        """Make the first namespace and start refilling.

        Raises:
            OSError: naming what the kernel refused.
        """
        self._ready.append(await linux.in_thread(make_namespace))
        self._refilling = asyncio.create_task(self._refill(), name="namespaces")

    def check(self) -> None:
        """Raise Unavailable while namespaces cannot be made."""
        if self._fault is not None:
            raise Unavailable(f"network namespace: {self._fault}")

    async def take(self) -> Namespace:
        """Return a namespace that nobody has used.

        Raises:
            Unavailable: none can be made now.
        """
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not self._ready:
                    self._added.clear()
                    await self._added.wait()
        except TimeoutError:
            self.check()
            raise Unavailable(f"network namespace: none in {_PATIENCE_S} s") from None
        self._taken.set()
        return self._ready.popleft()

    async def close(self) -> None:
        """Stop refilling and give up what is ready."""
        self._closing = True
        self._taken.set()
        if self._refilling is not None:
            await self._refilling
        while self._ready:
            self._ready.popleft().close()

    async def _refill(self) -> None:
        while not self._closing:
            if len(self._ready) < self._warm:
                await self._add_one()
            else:
                self._taken.clear()
                await self._taken.wait()

    async def _add_one(self) -> None:
        try:
            self._ready.append(await linux.in_thread(make_namespace))
        except OSError as error:
            self._fault = str(error)
            log.warning("namespace.failed", error=str(error))
            await asyncio.sleep(_RETRY_S)
            return
        self._fault = None
        self._added.set()
