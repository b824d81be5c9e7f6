"""The runs that this worker holds.

Invariant: a held run's task is cancelled the moment its lease is over, so whatever it started is killed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from enum import StrEnum
from time import monotonic

import structlog

from caisson.common.leases import Grant, Holding, Verdict
from caisson.runner import metrics
from caisson.runner.domain.leases import Lease

log = structlog.get_logger(__name__)


class End(StrEnum):
    """How a worker let go of a run."""

    FINISHED = "finished"
    LOST = "lost"
    EXPIRED = "expired"
    RELEASED = "released"
    ABANDONED = "abandoned"


class HeldRun:
    """One run in this worker's hands. `end` is set once, by whoever ends it first."""

    def __init__(self, grant: Grant, *, worker_id: str, claimed_at: float) -> None:
        self.grant = grant
        self.holding = Holding(worker_id=worker_id, run_id=grant.run_id, fence=grant.fence)
        self.overdue_at = monotonic() + grant.remaining_s
        self.cancelling = asyncio.Event()
        self.finishing = False
        self.end: End | None = None
        self._lease = Lease(duration_s=grant.lease_s, sent_at=claimed_at)
        self._task: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None

    def begin(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Start working on the run; the task's end is the end of the hold."""

        async def held() -> None:
            try:
                await work()
            finally:
                self.forget()

        self._task = asyncio.create_task(held(), name=f"run-{self.grant.run_id}")
        self._watch_lease()
        return self._task

    def hear(self, verdict: Verdict, *, sent_at: float) -> None:
        """Take the ledger's word. While the end is being recorded, that call's answer counts, not a heartbeat's."""
        match verdict:
            case Verdict.LOST:
                if not self.finishing:
                    self.let_go(End.LOST)
                return
            case Verdict.CANCEL:
                self.cancelling.set()
            case Verdict.CONTINUE:
                pass
        self._lease = self._lease.renewed(sent_at)
        self._watch_lease()

    def let_go(self, end: End) -> None:
        """Stop working at once; whatever the run started is killed."""
        if self.end is None and self._task is not None and not self._task.done():
            self.end = end
            log.warning("run.let_go", run=self.grant.run_id, fence=self.grant.fence, end=end)
            self._task.cancel()

    def forget(self) -> None:
        """Stop watching the lease."""
        if self._expiry is not None:
            self._expiry.cancel()

    def _watch_lease(self) -> None:
        self.forget()
        if self._task is None or self._task.done():
            return
        remaining_s = max(0.0, self._lease.remaining_s(monotonic()))
        self._expiry = asyncio.get_running_loop().call_later(remaining_s, self.let_go, End.EXPIRED)


class Holdings:
    """All held runs, and how many more this worker may take."""

    def __init__(self, *, slots: int, on_free: Callable[[], None]) -> None:
        self._slots = slots
        self._on_free = on_free
        self._held: dict[asyncio.Task[None], HeldRun] = {}
        self._empty = asyncio.Event()
        self._changed()

    def __iter__(self) -> Iterator[HeldRun]:
        return iter(tuple(self._held.values()))

    @property
    def free(self) -> int:
        """How many runs may be taken now."""
        return max(0, self._slots - len(self._held))

    def find(self, run_id: str) -> list[HeldRun]:
        """Return what is held of one run: after a lost lease, an older hold may still be clearing up."""
        return [held for held in self._held.values() if held.grant.run_id == run_id]

    def add(self, held: HeldRun, work: Callable[[], Awaitable[None]]) -> None:
        """Take a run. A newer hold of a run begins when the older ones have cleared up."""
        older = [task for task, other in self._held.items() if other.grant.run_id == held.grant.run_id]

        async def after_older() -> None:
            if older:
                await asyncio.wait(older)
            await work()

        task = held.begin(after_older)
        self._held[task] = held
        task.add_done_callback(self._remove)
        self._changed()

    async def wait_empty(self, within_s: float) -> bool:
        """Wait until nothing is held, at most `within_s`; say whether that is so."""
        try:
            await asyncio.wait_for(self._empty.wait(), within_s)
        except TimeoutError:
            return False
        return True

    def _remove(self, task: asyncio.Task[None]) -> None:
        held = self._held.pop(task)
        metrics.RUNS.labels(end=held.end or End.ABANDONED).inc()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("run.crashed", run=held.grant.run_id, error=repr(error), exc_info=error)
        self._changed()
        self._on_free()

    def _changed(self) -> None:
        metrics.FREE_SLOTS.set(self.free)
        if self._held:
            self._empty.clear()
        else:
            self._empty.set()
