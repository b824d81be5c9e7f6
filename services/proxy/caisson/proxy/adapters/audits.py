"""Audit records, in batches per run, to the events stream.

Invariant: a request never waits for its record; what cannot be kept is counted as dropped.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from time import gmtime, monotonic, strftime
from typing import Any

import structlog

from caisson.common.bus import Bus
from caisson.common.envelope import Envelope
from caisson.common.errors import Unavailable
from caisson.common.ids import Ids, new_id
from caisson.common.subjects import event
from caisson.proxy import metrics
from caisson.proxy.domain.records import Audit

EVENT = "proxy.requested"
_MAX_RECORDS = 50_000
_MAX_BATCHES = 1_000
_BATCH = 1_000
_AT_ONCE = 16
_PAUSE_S = 0.2

log = structlog.get_logger(__name__)


class Audits:
    """Records that wait to be told."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._records: list[Audit] = []
        self._batches: deque[Envelope] = deque()

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
        _count(records)
        for envelope in _envelopes(records):
            if len(self._batches) < _MAX_BATCHES:
                self._batches.append(envelope)
            else:
                metrics.DROPPED.labels(kind="audit").inc(len(envelope.data["requests"]))
        while self._batches:
            sending = [self._batches[index] for index in range(min(_AT_ONCE, len(self._batches)))]
            results = await asyncio.gather(*map(self._publish, sending))
            unsent = [envelope for envelope, is_sent in zip(sending, results, strict=True) if not is_sent]
            for _ in sending:
                self._batches.popleft()
            self._batches.extendleft(reversed(unsent))
            if unsent:
                return

    async def _publish(self, envelope: Envelope) -> bool:
        try:
            body = envelope.model_dump_json().encode()
            await self._bus.publish_event(event(EVENT, envelope.ids), body, message_id=envelope.id)
        except Unavailable as error:
            log.warning("audits.unpublished", reason=error.detail, waiting=len(self._batches))
            return False
        return True


def _count(records: Sequence[Audit]) -> None:
    for audit in records:
        upstream = "" if audit.route is None else audit.route.prepared.policy.name
        metrics.REQUESTS.add(upstream, audit.status, audit.duration_s)
        if audit.echoed:
            metrics.CREDENTIAL_ECHOED.labels(upstream=upstream).inc()


def _envelopes(records: Sequence[Audit]) -> Iterator[Envelope]:
    runs: defaultdict[int, list[Audit]] = defaultdict(list)
    for audit in records:
        if audit.ids is not None:
            runs[id(audit.ids)].append(audit)
    now = datetime.now(UTC)
    offset_s = now.timestamp() - monotonic()
    for audits in runs.values():
        ids = audits[0].ids or Ids()
        for start in range(0, len(audits), _BATCH):
            yield Envelope.model_construct(  # what this process wrote need not be validated by it
                id=new_id("evt"),
                type=EVENT,
                tenant_id=ids.tenant,
                user_id=ids.user,
                session_id=ids.session,
                run_id=ids.run,
                occurred_at=now,
                data={"requests": [_tell(audit, offset_s) for audit in audits[start : start + _BATCH]]},
            )


def _tell(audit: Audit, offset_s: float) -> dict[str, Any]:
    route = audit.route
    seconds, fraction = divmod(audit.started_s + offset_s, 1)
    return {
        "started_at": f"{_format_second(int(seconds))}.{int(fraction * 1000):03d}Z",
        "upstream": route and route.prepared.policy.name,
        "method": audit.method.decode("latin-1"),
        "path": route and route.template,
        "status": audit.status,
        "reason": audit.reason,
        "bytes_in": audit.bytes_in,
        "bytes_out": audit.bytes_out,
        "duration_ms": round(audit.duration_s * 1000, 3),
        "rewritten": sorted({location for location, _ in audit.findings}) if audit.findings else [],
        "credential": route and route.prepared.credential,
        "credential_echoed": audit.echoed,
    }


@lru_cache(maxsize=64)
def _format_second(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
