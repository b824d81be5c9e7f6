"""The contexts bucket as a proxy sees it, with the proxy's rights."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
from nats.aio.client import Client
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError

from caisson.common.contexts import RunContext
from caisson.common.subjects import CONTEXTS_STREAM
from caisson.stack.nats import EmbeddedNats


class ProxyView:
    """Reads contexts, and remembers every byte it has seen."""

    def __init__(self, client: Client) -> None:
        self._jetstream = client.jetstream()
        self._seen: list[str] = []

    async def context(self, request_id: str) -> RunContext:
        """Return a context as it is now."""
        return RunContext.model_validate_json((await self._last(request_id)).data or b"")

    async def revision(self, request_id: str) -> int:
        """Return the number of a context's last change."""
        return (await self._last(request_id)).seq or 0

    async def ttl(self, request_id: str) -> str | None:
        """Return how long the server keeps a context that is not renewed."""
        return ((await self._last(request_id)).headers or {}).get("Nats-TTL")

    async def is_gone(self, request_id: str) -> bool:
        """Return whether a context was taken away."""
        try:
            return (await self._last(request_id)).data in {None, b""}
        except NotFoundError:
            return True

    def everything(self) -> str:
        """Return all that was ever seen here."""
        return "\n".join(self._seen)

    async def _last(self, request_id: str) -> RawStreamMsg:
        subject = f"$KV.contexts.{request_id}"
        message: Any = await self._jetstream.get_last_msg(CONTEXTS_STREAM, subject, direct=True)
        self._seen.append(f"{message.subject} {message.headers} {(message.data or b'').decode()}")
        found: RawStreamMsg = message
        return found


@asynccontextmanager
async def watching(server: EmbeddedNats) -> AsyncIterator[ProxyView]:
    """Connect with the proxy's rights."""
    client = await nats.connect(
        server.url, user="proxy", password=server.passwords["proxy"], inbox_prefix=b"_INBOX_proxy"
    )
    try:
        yield ProxyView(client)
    finally:
        await client.close()
