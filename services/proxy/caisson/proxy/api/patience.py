"""How long a connection without an exchange is waited for."""

_HEAD_LIMIT_S = 30.0
_IDLE_LIMIT_S = 75.0
_LINGER_LIMIT_S = 2.0


class Patience:
    """Looked at now and then with the time. Whoever reads sets `is_stirred`."""

    __slots__ = ("_head_since", "_linger_since", "_quiet_since", "is_stirred")

    def __init__(self) -> None:
        self.is_stirred = True
        self._quiet_since = 0.0
        self._head_since: float | None = None
        self._linger_since: float | None = None

    def is_head_late(self, now: float, *, between: bool) -> bool:
        """Whether a head has been arriving for too long, however busily."""
        if between:
            self._head_since = None
            return False
        self._head_since = self._head_since or now
        return now - self._head_since > _HEAD_LIMIT_S

    def is_idle(self, now: float) -> bool:
        """Whether nothing has arrived for too long."""
        if self.is_stirred:
            self.is_stirred = False
            self._quiet_since = now
        return now - self._quiet_since > _IDLE_LIMIT_S

    def has_lingered(self, now: float) -> bool:
        """Whether a client has had long enough to read its last answer."""
        self._linger_since = self._linger_since or now
        return now - self._linger_since > _LINGER_LIMIT_S
