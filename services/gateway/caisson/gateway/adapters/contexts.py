"""Run contexts in the NATS bucket `contexts`. Each value dies by the server's clock unless it is renewed."""

import asyncio
import math

import nats.errors
import nats.js.errors
import structlog

from caisson.common.bus import Bus
from caisson.common.contexts import RunContext
from caisson.common.errors import Unavailable
from caisson.common.streams import declare
from caisson.common.subjects import CONTEXTS_STREAM

_TIMEOUT_S = 2.0
_TOMBSTONE_S = 60
_PURGE = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}

log = structlog.get_logger(__name__)


class NatsContexts:
    """Writes contexts for the proxies."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._declaring = asyncio.Lock()

    async def put(self, context: RunContext) -> None:
        """Make a context known or renew it.

        Raises:
            Unavailable: when the bucket did not confirm it.
        """
        body = context.model_dump_json().encode()
        await self._publish(context.request_id, body, ttl_s=math.ceil(context.ttl_s), headers=None)

    async def revoke(self, request_id: str) -> None:
        """Take a context away. A failure is logged: the value dies with its time to live all the same."""
        try:
            await self._publish(request_id, b"", ttl_s=_TOMBSTONE_S, headers=dict(_PURGE))
        except Unavailable as error:
            log.warning("context.revoke_failed", reason=error.detail)

    async def _publish(self, key: str, body: bytes, *, ttl_s: int, headers: dict[str, str] | None) -> None:
        try:
            await self._send(key, body, ttl_s, headers)
        except nats.js.errors.NoStreamResponseError:
            async with self._declaring:
                await declare(self._bus.jetstream)
            await self._retry(key, body, ttl_s, headers)
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise Unavailable(f"contexts: {error!r}") from error

    async def _retry(self, key: str, body: bytes, ttl_s: int, headers: dict[str, str] | None) -> None:
        try:
            await self._send(key, body, ttl_s, headers)
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise Unavailable(f"contexts: {error!r}") from error

    async def _send(self, key: str, body: bytes, ttl_s: int, headers: dict[str, str] | None) -> None:
        await self._bus.jetstream.publish(
            f"$KV.contexts.{key}", body, stream=CONTEXTS_STREAM, timeout=_TIMEOUT_S, msg_ttl=ttl_s, headers=headers
        )
