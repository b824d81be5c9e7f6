"""Reports while the other side is away: kept within bounds, counted beyond, told once with their ids."""

import json
from typing import cast

from prometheus_client import REGISTRY

from caisson.common.bus import Bus
from caisson.common.errors import Unavailable
from caisson.common.ids import Ids, RunId, TenantId, UserId
from caisson.common.leases import Done, RecordSecurity, SecurityEvent, SecurityKind
from caisson.common.messages import Message
from caisson.common.subjects import Subject
from caisson.proxy.adapters.audits import Audits
from caisson.proxy.adapters.security import SecurityReports
from caisson.proxy.domain.records import Audit

IDS = Ids(tenant=TenantId("acme"), user=UserId("u-1"), run=RunId("run_1"))


class AwayBus:
    """A bus on which nobody answers until told otherwise."""

    def __init__(self) -> None:
        self.is_away = True
        self.told: list[tuple[str, bytes]] = []

    async def publish_event(self, _: Subject, body: bytes, *, message_id: str) -> None:
        self.told.append((message_id, body))
        self._answer()

    async def call(self, _: Subject, request: Message, __: type[Done], *, timeout_s: float) -> Done:
        assert isinstance(request, RecordSecurity)
        assert timeout_s > 0
        self.told += [(event.id, b"") for event in request.events]
        self._answer()
        return Done()

    def _answer(self) -> None:
        if self.is_away:
            raise Unavailable("away")


def audit() -> Audit:
    return Audit(IDS, None, "metrics", b"GET", 403, None, 0, 0, 1.0, 0.001, [], echoed=False, traceparent=None)


def event(number: int) -> SecurityEvent:
    return SecurityEvent(id=f"sec_{number}", kind=SecurityKind.PROXY_DENIED, run_id="run_1", reason="path_denied")


def dropped(kind: str) -> float:
    return REGISTRY.get_sample_value("caisson_proxy_records_dropped_total", {"kind": kind}) or 0


async def test_audits_wait_for_the_bus_and_keep_their_ids() -> None:
    bus = AwayBus()
    audits = Audits(cast("Bus", bus))
    audits.add(audit())
    await audits.flush()
    await audits.flush()
    bus.is_away = False
    await audits.flush()
    await audits.flush()
    assert len(bus.told) == 3
    assert len(set(bus.told)) == 1
    assert len(json.loads(bus.told[0][1])["data"]["requests"]) == 1


async def test_audits_beyond_the_bound_are_counted_and_dropped() -> None:
    audits = Audits(cast("Bus", AwayBus()))
    before = dropped("audit")
    for _ in range(3):
        for _ in range(30_000):
            audits.add(audit())
        await audits.flush()
    assert dropped("audit") - before == 40_000


async def test_security_reports_beyond_the_bound_are_counted_and_dropped() -> None:
    bus = AwayBus()
    reports = SecurityReports(cast("Bus", bus))
    before = dropped("security")
    for number in range(10_005):
        reports.add(event(number))
    assert not await reports.flush()
    assert dropped("security") - before == 5
    bus.is_away = False
    bus.told.clear()
    assert await reports.flush()
    assert [name for name, _ in bus.told] == [f"sec_{number}" for number in range(10_000)]
