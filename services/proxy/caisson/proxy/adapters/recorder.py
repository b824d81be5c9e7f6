"""Where records go: counters at once, audits and security reports in the background."""

from collections.abc import Callable, Mapping

import structlog

from caisson.common.ids import Ids, new_id
from caisson.common.leases import SecurityEvent, SecurityKind
from caisson.common.metrics import PROXY_DENIED, PROXY_REWRITE
from caisson.proxy import metrics
from caisson.proxy.adapters.audits import Audits
from caisson.proxy.adapters.security import SecurityReports
from caisson.proxy.domain.places import Location
from caisson.proxy.domain.records import Audit
from caisson.proxy.domain.refusals import Refuse

log = structlog.get_logger(__name__)


class Recorder:
    """Takes records without waiting for anybody."""

    def __init__(self, audits: Audits, security: SecurityReports) -> None:
        self._security = security
        self.requested: Callable[[Audit], None] = audits.add

    def refused(self, ids: Ids | None, refusal: Refuse, *, upstream: str | None, snippet: str) -> None:
        """Count a refusal; report a denial of a known run."""
        known = {"run": ids.run, "tenant": ids.tenant} if ids else {}
        log.info("request.refused", reason=refusal.reason, upstream=upstream, request=snippet, **known)
        if not refusal.is_denial:
            metrics.FAILURES.labels(reason=refusal.reason).inc()
            return
        PROXY_DENIED.labels(reason=refusal.reason).inc()
        detail = {"upstream": upstream, "explanation": refusal.detail}
        self._report(ids, SecurityKind.PROXY_DENIED, refusal.reason, snippet, detail)

    def rewrote(self, ids: Ids, *, upstream: str, location: Location, snippet: str) -> None:
        """Count and report a foreign tenant value that was replaced."""
        log.info("tenant.replaced", upstream=upstream, location=location, run=ids.run, tenant=ids.tenant)
        PROXY_REWRITE.labels(upstream=upstream, location=location).inc()
        detail = {"upstream": upstream, "location": location.value}
        self._report(ids, SecurityKind.PROXY_REWRITE, "tenant_replaced", snippet, detail)

    def _report(
        self, ids: Ids | None, kind: SecurityKind, reason: str, snippet: str, detail: Mapping[str, str | None]
    ) -> None:
        if ids is not None and ids.run is not None:
            event = SecurityEvent(
                id=new_id("sec"), kind=kind, run_id=ids.run, reason=reason, snippet=snippet, detail=dict(detail)
            )
            self._security.add(event)
