"""When an exchange has been silent for too long.

Invariant: the clock starts anew with every byte in either direction, and a slow exchange that moves is never ended.
"""

from typing import TYPE_CHECKING

from caisson.proxy.domain.decisions import Forward
from caisson.proxy.domain.refusals import Reason, Refuse

if TYPE_CHECKING:
    from caisson.proxy.api.exchange import Exchange


class Silence:
    """Looked at now and then with the time, and made at the first look: most exchanges are over before."""

    __slots__ = ("_progress", "_since")

    def __init__(self, since: float) -> None:
        self._since = since
        self._progress: tuple[int, ...] = ()

    def judge(self, exchange: "Exchange", forward: Forward, now: float) -> Refuse | None:
        """Return why the exchange must end, if it must."""
        progress = _measure(exchange)
        if progress != self._progress:
            self._progress, self._since = progress, now
        if now - self._since <= _patience_s(exchange, forward):
            return None
        if not exchange.is_received:
            return Refuse(reason=Reason.REQUEST_TIMEOUT, detail="The request's body did not arrive in time.")
        name = forward.prepared.policy.name
        detail = f"The upstream {name!r} sent nothing for too long; it may be at work still."
        return Refuse(reason=Reason.UPSTREAM_TIMEOUT, detail=detail)


def _measure(exchange: "Exchange") -> tuple[int, ...]:
    delivery = exchange.carriage.delivery if exchange.carriage else None
    received = exchange.upload.size_bytes if exchange.upload else 0
    return (received, exchange.is_received, delivery.size_bytes if delivery else -1)


def _patience_s(exchange: "Exchange", forward: Forward) -> float:
    limits = forward.prepared.policy.limits
    has_answer = exchange.carriage is not None and exchange.carriage.delivery is not None
    if exchange.is_received and not has_answer:
        return limits.first_byte_s + (limits.connect_s if exchange.is_waiting else 0)
    return limits.idle_s
