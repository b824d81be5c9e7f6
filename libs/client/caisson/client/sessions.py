"""Calls about sessions."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from caisson.client.calls import segment
from caisson.client.models import Session
from caisson.client.pages import paginate, parse
from caisson.client.transport import Transport


class SessionCalls:
    """What a caller does with sessions."""

    _transport: Transport

    async def create_session(
        self, *, metadata: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> Session:
        """Start a session."""
        body = {} if metadata is None else {"metadata": dict(metadata)}
        return parse(Session, await self._transport.post("/v1/sessions", body, key=idempotency_key))

    async def get_session(self, session_id: str) -> Session:
        """Return a session."""
        return parse(Session, await self._transport.get(f"/v1/sessions/{segment(session_id, field='session_id')}"))

    async def delete_session(self, session_id: str) -> Session | None:
        """Delete a session with its runs, their outputs and events, and its memories; what runs is cancelled.

        Returns None once everything is gone, and the session while something is left to do: that follows without
        another call, and nothing begins in the session meanwhile. Repeating it is harmless.
        """
        left = await self._transport.delete(f"/v1/sessions/{segment(session_id, field='session_id')}")
        return None if left is None else parse(Session, left)

    def list_sessions(self, *, limit: int | None = None) -> AsyncGenerator[Session, None]:
        """Iterate over sessions, newest first."""
        return paginate(self._transport, "/v1/sessions", Session, params={}, limit=limit)
