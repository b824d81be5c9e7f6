"""NATS in: doorbells. Invariant: a message here only says "ask the ledger now"; nothing in it is believed."""

from collections.abc import Callable

import structlog

from caisson.common import metrics, subjects
from caisson.common.bus import Bus
from caisson.common.envelope import open_envelope
from caisson.common.errors import InvalidInput

log = structlog.get_logger(__name__)


class Doorbells:
    """Turns facts on the bus into questions to the ledger."""

    def __init__(self, *, on_work: Callable[[], None], on_cancel: Callable[[str], None]) -> None:
        self._on_work = on_work
        self._on_cancel = on_cancel

    async def subscribe(self, bus: Bus) -> None:
        """Listen on the two core subscriptions until the connection ends."""
        await bus.listen(subjects.RUN_QUEUED_PATTERN, self._queued)
        await bus.listen(subjects.CANCEL_WAKE_PATTERN, self._cancelling)

    def _queued(self, _subject: str, _body: bytes) -> None:
        self._on_work()

    def _cancelling(self, subject: str, body: bytes) -> None:
        try:
            run_id = open_envelope(subject, body)[0].ids.run
        except InvalidInput as error:
            metrics.MISADDRESSED.labels(service="runner").inc()
            log.warning("bus.misaddressed", reason=error.detail)
            return
        if run_id is not None:
            self._on_cancel(run_id)
