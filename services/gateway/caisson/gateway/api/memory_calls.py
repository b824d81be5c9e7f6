"""Asking the memory service. Invariant: whom a request is for comes from key and headers, never from a body."""

from collections.abc import Sequence
from typing import TypeVar

from starlette.requests import Request

from caisson.common.bus import Bus
from caisson.common.memories import Caller as MemoryCaller
from caisson.common.messages import Message
from caisson.common.subjects import Subject
from caisson.gateway.api.callers import Caller, Callers, PlatformOnly, header
from caisson.gateway.domain.scopes import HEADER, read_scopes

ReplyT = TypeVar("ReplyT", bound=Message)

LONG_S = 120.0
_TIMEOUT_S = 20.0


class MemoryCalls:
    """Recognises callers with their scopes, and calls the memory service for them."""

    def __init__(self, callers: Callers, bus: Bus) -> None:
        self._callers = callers
        self._bus = bus

    async def recognise(self, request: Request, *, scopes: Sequence[str] = ()) -> tuple[Caller, MemoryCaller]:
        """Return the caller, and the same as the memory service knows it; `scopes` are granted to platform keys.

        Raises:
            PlatformOnly: a tenant key names scopes.
            InvalidInput: the header names no scopes, or too many.
        """
        caller = await self._callers.recognise(request)
        granted = _granted(request, caller)
        if caller.principal.is_platform:
            granted += scopes
        tenant, user = caller.tenant, caller.principal.require_user()
        return caller, MemoryCaller(tenant_id=tenant, user_id=user, scopes=sorted(set(granted)))

    async def ask(
        self, subject: Subject, message: Message, reply: type[ReplyT], *, timeout_s: float = _TIMEOUT_S
    ) -> ReplyT:
        """Return the service's answer or raise its error; Unavailable where nobody answers."""
        return await self._bus.call(subject, message, reply, timeout_s=timeout_s)


def _granted(request: Request, caller: Caller) -> list[str]:
    given = header(request, HEADER.lower().encode(), HEADER)
    if given is None:
        return []
    if not caller.principal.is_platform:
        raise PlatformOnly(
            "only a platform key grants scopes; a tenant key must not send Caisson-Scopes", field=HEADER
        )
    return read_scopes(given)
