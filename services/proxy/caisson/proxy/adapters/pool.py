"""The connections to upstreams that wait for their next request.

Invariant: only a failure to connect is tried again here, because then nothing was sent.
"""

import asyncio
import ssl
from collections import defaultdict, deque
from contextlib import suppress

from caisson.proxy.adapters.upstream import UpstreamConnection
from caisson.proxy.domain.links import Link, Unreachable
from caisson.proxy.domain.policies import Origin

_MAX_IDLE_PER_ORIGIN = 256
_IDLE_LIMIT_S = 60.0
_FRESH_LIMIT_S = 3.0
"""Below the keep-alive time of common servers (Node: 5 s), so that a request that must not be sent twice is safe."""
_RETRY_AFTER_S = 0.05


class Pool:
    """Idle connections by origin, the last used first."""

    def __init__(self) -> None:
        self._idle: defaultdict[Origin, deque[UpstreamConnection]] = defaultdict(deque)
        self._loop = asyncio.get_running_loop()

    def idle(self, origin: Origin, *, fresh: bool) -> Link | None:
        """Return an idle connection, or None."""
        waiting = self._idle[origin]
        while waiting:
            connection = waiting[-1]
            if fresh and self._loop.time() - connection.idle_since > _FRESH_LIMIT_S:
                return None
            waiting.pop()
            if connection.is_open:
                return connection
        return None

    async def connect(self, origin: Origin) -> Link:
        """Open a connection; a refusal is tried once more.

        Raises:
            Unreachable: with what the other side, or the resolver, said.
        """
        try:
            async with asyncio.timeout(origin.connect_s):
                with suppress(ConnectionError):
                    return await self._open(origin)
                await asyncio.sleep(_RETRY_AFTER_S)
                return await self._open(origin)
        except TimeoutError:
            raise Unreachable(f"no connection within {origin.connect_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"its certificate is not valid: {error.verify_message}") from error
        except OSError as error:
            raise Unreachable(error.strerror or type(error).__name__) from error

    def reap(self) -> None:
        """Close what has waited too long."""
        oldest = self._loop.time() - _IDLE_LIMIT_S
        for waiting in self._idle.values():
            while waiting and (waiting[0].idle_since < oldest or not waiting[0].is_open):
                waiting.popleft().abort()

    def close(self) -> None:
        """Close every idle connection."""
        for waiting in self._idle.values():
            while waiting:
                waiting.pop().abort()

    async def _open(self, origin: Origin) -> UpstreamConnection:
        waiting = self._idle[origin]

        def keep(connection: UpstreamConnection) -> None:
            connection.idle_since = self._loop.time()
            waiting.append(connection)
            if len(waiting) > _MAX_IDLE_PER_ORIGIN:
                waiting.popleft().abort()

        _, connection = await self._loop.create_connection(
            lambda: UpstreamConnection(keep),
            origin.host,
            origin.port,
            ssl=origin.tls,
            server_hostname=origin.host if origin.tls else None,
        )
        return connection
