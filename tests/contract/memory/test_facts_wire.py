"""The facts that memory publishes, as they stand on the wire: `facts.json` changes on purpose or not at all."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from caisson.common.memories import Provenance
from caisson.common.postgres import load_queries
from caisson.memory.adapters.postgres.fact_outbox import PostgresFactOutbox
from caisson.memory.app import QUERIES_FILE
from tests.support.event_catalogue import documented_events
from tests.support.memory_desk import Desk

GOLDEN = Path(__file__).with_name("facts.json")
_ID = re.compile(r"\b([a-z]{3})_[0-9a-z]{26}\b")


async def test_each_fact_stands_on_the_wire_as_agreed(desk: Desk) -> None:
    told = {
        "remembered": await _told(desk, desk.store("the gate is green", subject="gate", attribute="colour")),
        "superseded": await _told(desk, desk.store("the gate is red", subject="gate", attribute="colour")),
        "remembered, of a run in a session": await _told(desk, _episode(desk)),
        "remembered, a summary": await _told(desk, _summary(desk)),
        "recalled": await _told(desk, desk.search("which gate is red", session_id="ses_1")),
        "forgotten": await _told(desk, _deletion(desk)),
        "forgotten, expired": await _told(desk, _expiry(desk)),
    }
    assert told == json.loads(GOLDEN.read_text()), f"if the wire is meant to change, change {GOLDEN.name} with it"


def test_the_agreement_holds_every_documented_field_and_no_other() -> None:
    agreed: dict[str, set[str]] = {}
    for fact in json.loads(GOLDEN.read_text()).values():
        agreed.setdefault(fact["type"], set()).update(fact["data"])
    assert agreed == {name: fields for name, fields in documented_events().items() if name.startswith("memory.")}


async def _told(desk: Desk, doing: Any) -> Any:
    """Do something, and return the one fact that it leaves unsent: with ids by their kind, and without its time."""
    await doing
    async with PostgresFactOutbox(desk.pool, load_queries(QUERIES_FILE)).batch() as held:
        [fact] = held.facts
        await held.mark_sent(held.facts)
    told = json.loads(_ID.sub(r"\1_…", fact.model_dump_json()))
    assert told.pop("tenant_id") == desk.tenant
    assert told.pop("occurred_at").endswith("Z")
    return told


async def _episode(desk: Desk) -> None:
    await desk.store(
        "opened the gate 0",
        layer="episodic",
        outcome="ok",
        subject="hinge",
        provenance=Provenance(kind="run", run_id="run_1", session_id="ses_1"),
    )


async def _summary(desk: Desk) -> None:
    for n in (1, 2):
        await desk.episode(f"opened the gate {n}", subject="hinge")
    await desk.rows("DELETE FROM memory.events WHERE tenant_id = $1")
    assert len((await desk.consolidate()).created) == 1


async def _deletion(desk: Desk) -> None:
    [current] = await desk.rows("SELECT memory_id FROM memory.memories WHERE tenant_id = $1 AND text ~ 'red$'")
    await desk.delete(current["memory_id"])


async def _expiry(desk: Desk) -> None:
    await desk.store("the gate is new", expires_at=desk.clock() + timedelta(hours=1))
    await desk.rows("DELETE FROM memory.events WHERE tenant_id = $1")
    desk.clock.ahead = timedelta(hours=2)
    assert await desk.housekeeping.drop_expired(await desk.lease()) == 1
