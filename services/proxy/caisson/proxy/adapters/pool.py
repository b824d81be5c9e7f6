"""The connections to upstreams that wait for their next request.

Invariant: only a failure to connect is tried again here, because then nothing was sent.
"""

import asyncio
import ssl
from collections import defaultdict, deque
from contextlib import suppress

from caisson.proxy.adapters.upstream import UpstreamConnection
from caisson.proxy.domain.known_answers import KnownAnswers
from caisson.proxy.domain.links import Link, Unreachable, Whose
from caisson.proxy.domain.policies import Origin
from caisson.proxy.writes import Writes

_MAX_IDLE_EACH = 64
_IDLE_LIMIT_S = 15.0
_FRESH_LIMIT_S = 3.0
"""Below the keep-alive time of common servers (Node: 5 s), so that a request that must not be sent twice is safe."""
_RETRY_AFTER_S = 0.05


class Pool:
    """Idle connections by origin and by whose they are, the last used first."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes
        self._idle: defaultdict[tuple[Origin, Whose], deque[UpstreamConnection]] = defaultdict(deque)
        self._known = KnownAnswers()
        self._loop = asyncio.get_running_loop()

    def idle(self, origin: Origin, whose: Whose, *, fresh: bool) -> Link | None:
        """Return an idle connection, or None."""
        waiting = self._idle[origin, whose]
        while waiting:
            connection = waiting[-1]
            if fresh and self._loop.time() - connection.idle_since > _FRESH_LIMIT_S:
                return None
            waiting.pop()
            if connection.is_open:
                return connection
        return None

    async def connect(self, origin: Origin, whose: Whose) -> Link:
        """Open a connection; a refusal is tried once more.

        Raises:
            Unreachable: with what the other side, or the resolver, said.
        """
        try:
            async with asyncio.timeout(origin.connect_s):
                with suppress(ConnectionError):
                    return await self._open(origin, whose)
                await asyncio.sleep(_RETRY_AFTER_S)
                return await self._open(origin, whose)
        except TimeoutError:
            raise Unreachable(f"no connection within {origin.connect_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(f"its certificate is not valid: {error.verify_message}") from error
        except OSError as error:
            raise Unreachable(error.strerror or type(error).__name__) from error

    def reap(self) -> None:
        """Close what has waited too long."""
        oldest = self._loop.time() - _IDLE_LIMIT_S
        for key, waiting in list(self._idle.items()):
            while waiting and (waiting[0].idle_since < oldest or not waiting[0].is_open):
                waiting.popleft().abort()
            if not waiting:
                del self._idle[key]

    def close(self) -> None:
        """Close every idle connection."""
        for waiting in self._idle.values():
            while waiting:
                waiting.pop().abort()

    async def _open(self, origin: Origin, whose: Whose) -> UpstreamConnection:
        def keep(connection: UpstreamConnection) -> None:
            connection.idle_since = self._loop.time()
            waiting = self._idle[origin, whose]
            waiting.append(connection)
            if len(waiting) > _MAX_IDLE_EACH:
                waiting.popleft().abort()

        _, connection = await self._loop.create_connection(
            lambda: UpstreamConnection(keep, self._known, self._writes),
            origin.host,
            origin.port,
            ssl=origin.tls,
            server_hostname=origin.host if origin.tls else None,
        )
        return connection
