"""The data of each event holds exactly the fields that `docs/events.md` names."""

import httpx

from caisson.common.ids import new_id
from caisson.common.leases import SecurityEvent, SecurityKind
from tests.support.event_catalogue import documented_events
from tests.support.product import submit
from tests.support.published import UNNUMBERED
from tests.support.sse import events_of
from tests.support.worker import Worker

IN_THE_STREAM = {"run_id", "occurred_at"}


async def test_each_event_holds_the_documented_fields(product: httpx.AsyncClient, worker: Worker) -> None:
    run_id = await submit(product, "one", "two")
    await worker.release(await worker.take())
    async with events_of(product, run_id) as reader:
        grant = await worker.take()
        await reader.until(lambda event: event.type == "run.requeued")
        await worker.start(grant)
        await worker.say(grant, "x")
        reports = [
            SecurityEvent(id=new_id("sec"), kind=kind, run_id=run_id, reason="because") for kind in SecurityKind
        ]
        await worker.record_security(*reports[:2])
        await worker.finish(grant, security=tuple(reports[2:]), start_next=True)
        await worker.finish(grant, 1, finish_run=True)
        events = await reader.rest()
    documented = {name: fields for name, fields in documented_events().items() if not name.startswith("memory.")}
    seen = {event.type for event in events}
    assert seen == documented.keys() - UNNUMBERED
    for event in events:
        expected = documented[event.type] | (IN_THE_STREAM if event.id else set())
        assert set(event.data) == expected, event.type
