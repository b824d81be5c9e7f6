"""Audit records, in batches per run, to the events stream.

Invariant: a request never waits for its record; what cannot be kept is counted as dropped.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic, time

import structlog
from opentelemetry import trace

from caisson.common import tracing
from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import Unavailable
from caisson.common.ids import new_id
from caisson.common.subjects import Subject, event
from caisson.proxy import metrics
from caisson.proxy.adapters.audit_lines import write_line
from caisson.proxy.domain.records import Audit

EVENT = "proxy.requested"
_MAX_RECORDS = 50_000
_BATCH = 1_000
_AT_ONCE = 16
_PAUSE_S = 0.1
_EMPTY = "[]}}"

_NS = 1_000_000_000

log = structlog.get_logger(__name__)
tracer = trace.get_tracer(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """One event about requests of one run; it keeps its id until it is confirmed."""

    id: str
    subject: Subject
    body: bytes
    records: int


class Audits:
    """Records that wait to be told."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._records: list[Audit] = []
        self._batches: deque[_Batch] = deque()
        self._unconfirmed = 0

    def add(self, audit: Audit) -> None:
        """Take a record."""
        if len(self._records) < _MAX_RECORDS:
            self._records.append(audit)
        else:
            metrics.DROPPED.labels(kind="audit").inc()

    async def run(self) -> None:
        """Tell what there is, for ever."""
        while True:
            await asyncio.sleep(_PAUSE_S)
            await self.flush()

    async def flush(self) -> None:
        """Tell what there is; what is not confirmed stays for the next time, under the same message id."""
        records, self._records = self._records, []
        offset_s = time() - monotonic()
        for audit in records:
            _count(audit)
            if audit.traceparent is not None:
                _trace(audit, audit.traceparent, offset_s)
        for batch in _gather(records):
            self._keep(batch)
        while self._batches:
            sending = [self._batches.popleft() for _ in range(min(_AT_ONCE, len(self._batches)))]
            try:
                results = await asyncio.gather(*map(self._publish, sending))
            except asyncio.CancelledError:
                self._batches.extendleft(reversed(sending))
                raise
            unsent = [batch for batch, is_sent in zip(sending, results, strict=True) if not is_sent]
            self._unconfirmed -= sum(batch.records for batch in sending) - sum(batch.records for batch in unsent)
            self._batches.extendleft(reversed(unsent))
            if unsent:
                return

    def _keep(self, batch: _Batch) -> None:
        if self._unconfirmed + batch.records > _MAX_RECORDS:
            metrics.DROPPED.labels(kind="audit").inc(batch.records)
        else:
            self._unconfirmed += batch.records
            self._batches.append(batch)

    async def _publish(self, batch: _Batch) -> bool:
        try:
            await self._bus.publish_event(batch.subject, batch.body, message_id=batch.id)
        except Unavailable as error:
            log.warning("audits.unpublished", reason=error.detail, waiting=self._unconfirmed)
            return False
        return True


def _count(audit: Audit) -> None:
    upstream = audit.upstream or ""
    metrics.REQUESTS.add(upstream, audit.status, audit.duration_s)
    if audit.echoed:
        metrics.CREDENTIAL_ECHOED.labels(upstream=upstream).inc()


def _trace(audit: Audit, traceparent: str, offset_s: float) -> None:
    """Tell the request's span after the fact: while it was carried, nobody waited for it."""
    began_s = audit.started_s + offset_s
    attributes: dict[str, str | int] = {
        "caisson.upstream": audit.upstream or "",
        "http.response.status_code": audit.status,
    }
    if audit.reason is not None:
        attributes["caisson.reason"] = audit.reason
    span = tracer.start_span(
        f"{audit.method.decode('latin-1')} {audit.upstream or 'refused'}",
        context=tracing.under(traceparent),
        kind=trace.SpanKind.CLIENT,
        attributes=attributes,
        start_time=int(began_s * _NS),
    )
    if audit.ids is not None:
        tracing.describe(span, audit.ids)
    span.end(end_time=int((began_s + audit.duration_s) * _NS))


def _gather(records: list[Audit]) -> Iterator[_Batch]:
    runs: defaultdict[int, list[Audit]] = defaultdict(list)
    for audit in records:
        if audit.ids is not None:
            runs[id(audit.ids)].append(audit)
    now = datetime.now(UTC)
    offset_s = now.timestamp() - monotonic()
    for audits in runs.values():
        for start in range(0, len(audits), _BATCH):
            yield _write(audits[start : start + _BATCH], now, offset_s)


def _write(audits: list[Audit], now: datetime, offset_s: float) -> _Batch:
    ids = audits[0].ids
    assert ids is not None  # noqa: S101 - only records of known runs are gathered
    envelope = Envelope(
        id=new_id("evt"),
        type=EVENT,
        tenant_id=ids.tenant,
        user_id=ids.user,
        session_id=ids.session,
        run_id=ids.run,
        occurred_at=now,
        data={"requests": []},
    )
    lines = ",".join([write_line(audit, offset_s) for audit in audits])
    body = f"{envelope.model_dump_json().removesuffix(_EMPTY)}[{lines}]}}}}"
    return _Batch(id=envelope.id, subject=event(EVENT, ids), body=body.encode(), records=len(audits))
