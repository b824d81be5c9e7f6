"""The contexts in memory.

Invariant: one stored value makes a caller live once, for its time to live from when it first arrived here; only a
newer value prolongs that. Seeing the same value again, by a point read or a second watch, never does.
"""

from collections.abc import Callable

from caisson.common.contexts import RunContext
from caisson.proxy.domain.callers import Caller

Clock = Callable[[], float]
"""Monotonic seconds."""


class Registry:
    """Callers by request id. Revisions grow within an epoch, which is one life of the bucket."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._callers: dict[str, Caller] = {}
        self._epoch = ""
        self._seen = 0
        self._listed: set[str] = set()
        self._carries_over = False

    def find(self, request_id: str) -> Caller | None:
        """Return the caller if it is alive."""
        caller = self._callers.get(request_id)
        return caller if caller is not None and caller.deadline > self._clock() else None

    def is_alive(self, caller: Caller) -> bool:
        """Whether its context still holds."""
        return caller.deadline > self._clock()

    def begin_snapshot(self, epoch: str) -> None:
        """A watch begins, and will list what the bucket holds.

        In a new epoch the old bucket is gone: nothing is known to be revoked, so what is in memory holds until its
        deadline, and any value of the new bucket is newer.
        """
        self._carries_over = epoch != self._epoch
        if self._carries_over:
            self._epoch = epoch
            self._seen = 0
            for caller in self._callers.values():
                caller.revision = 0
        self._listed = set()

    def end_snapshot(self) -> None:
        """Everything was listed: what the same bucket does not hold any more has been revoked."""
        if not self._carries_over:
            for request_id in self._callers.keys() - self._listed:
                self._drop(request_id)
        self._listed = set()

    def receive(self, request_id: str, revision: int, context: RunContext | None) -> None:
        """Take what the watch delivers, in order; no context means that it was revoked or has expired."""
        is_new = revision > self._seen
        self._seen = max(self._seen, revision)
        self._listed.add(request_id)
        self._take(request_id, revision, context, is_new=is_new)

    def read(self, request_id: str, revision: int, context: RunContext | None) -> None:
        """Take what a point read found; what the watch has delivered already is known better."""
        self._take(request_id, revision, context, is_new=revision > self._seen)

    def reap(self) -> None:
        """Forget those whose time is over."""
        now = self._clock()
        for request_id in [request_id for request_id, caller in self._callers.items() if caller.deadline <= now]:
            del self._callers[request_id]

    def _take(self, request_id: str, revision: int, context: RunContext | None, *, is_new: bool) -> None:
        caller = self._callers.get(request_id)
        if caller is not None and revision <= caller.revision:
            return
        if context is None:
            self._drop(request_id)
        elif caller is not None:
            caller.renew(context, revision=revision, deadline=self._clock() + context.ttl_s)
        elif is_new:
            deadline = self._clock() + context.ttl_s
            self._callers[request_id] = Caller(context, revision=revision, deadline=deadline)

    def _drop(self, request_id: str) -> None:
        caller = self._callers.pop(request_id, None)
        if caller is not None:
            caller.end()
