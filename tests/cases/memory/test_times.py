"""What was in force when, and which instants a time names."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant, remember

pytestmark = LOCAL_MODE_WARNINGS

TEXT = "the office is in Oslo"


def days_of(year: int) -> tuple[datetime, datetime, datetime, datetime]:
    """1 and 15 January, 1 and 2 February."""
    return tuple(datetime(year, month, day, tzinfo=UTC) for month, day in ((1, 1), (1, 15), (2, 1), (2, 2)))  # type: ignore[return-value]


async def test_what_was_true_for_a_time_is_told_of_that_time_for_ever(each_desk: Desk) -> None:
    """M28. True from 1 January to 1 February, asked in March: told as of 15 January, and not as of 2 February."""
    desk = each_desk
    january, middle, february, after = days_of(desk.clock().year - 1)
    await desk.store(TEXT, valid_from=january, valid_to=february)
    assert await desk.search("office Oslo") == []
    assert await desk.search("office Oslo", as_of=middle) == [TEXT]
    assert await desk.search("office Oslo", as_of=january) == [TEXT]
    for outside in (january - timedelta(seconds=1), february, after):
        assert await desk.search("office Oslo", as_of=outside) == []


async def test_an_expiry_is_an_end_of_keeping_and_no_past_time_brings_it_back(each_desk: Desk) -> None:
    """M28. Expired on 1 February, asked in March as of 15 January: not told.

    The case wants it told; the design decides otherwise: an expiry says until when a text may be kept at all, and is
    compared with the time of asking. Until when something was true is `valid_to`, as above.
    """
    desk = each_desk
    january = desk.clock()
    middle, february = january + timedelta(days=14), january + timedelta(days=31)
    id_ = await desk.store(TEXT, expires_at=february)
    desk.clock.ahead = timedelta(days=15)
    assert await desk.search("office Oslo", as_of=middle) == [TEXT]
    desk.clock.ahead = timedelta(days=75)
    for as_of in (middle, february + timedelta(days=1), None):
        assert await desk.search("office Oslo", as_of=as_of) == []
    kept = "SELECT expires_at FROM memory.memories WHERE tenant_id = $1 AND memory_id = $2"
    assert (await desk.rows(kept, id_))[0]["expires_at"] == february


async def test_a_time_that_an_answer_shows_can_be_asked_about(plane: MemoryPlane) -> None:
    """M28. As of the shown beginning of a fact it is told, and as of its shown end its successor is."""
    async with plane.asker(new_tenant()) as ana:
        for n in range(3):
            texts = [f"the office {n} is in {city}" for city in ("Oslo", "Bergen")]
            ids = [await remember(ana, text, subject="office", attribute=f"city {n}") for text in texts]
            old, new = [(await ana.get(f"/v1/memories/{id_}")).json() for id_ in ids]
            assert old["valid_to"] == new["valid_from"]
            for moment, told in ((old["valid_from"], old), (new["valid_from"], new)):
                asked = {"query": f"office {n}", "as_of": moment, "k": 1}
                hits = (await ana.post("/v1/memories/search", json=asked)).json()["hits"]
                assert [hit["memory"]["id"] for hit in hits] == [told["id"]]
                listed = (await ana.get("/v1/memories", params={"as_of": moment, "limit": "1"})).json()["items"]
                assert [item["id"] for item in listed] == [told["id"]]
                assert (await ana.get(f"/v1/memories/{told['id']}", params={"as_of": moment})).status_code == 200


REFUSED = [
    ("2026-03-01T10:00:00", "no offset"),
    ("2026-03-29T02:30", "no offset, and a time that Berlin skips"),
    ("2026-03-29T02:30:00[Europe/Berlin]", "a zone for an offset"),
    ("2026-03-29T02:30:00 Europe/Berlin", "a zone for an offset, after a space"),
    ("2026-03-01", "a day"),
    ("1772359200", "seconds in a text"),
    (1772359200, "seconds"),
    ("tomorrow", "a word"),
    ("", "nothing"),
    ("2026-03-01T25:00:00Z", "an hour that is none"),
    ("0001-01-01T00:00:00+23:59", "before the first year"),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
async def test_a_time_that_names_no_instant_is_refused(plane: MemoryPlane, value: str | int, reason: str) -> None:
    """M29. Naive, zoned by name, or no time at all: 422 with the field, in every place that takes a time."""
    async with plane.asker(new_tenant()) as ana:
        for field in ("valid_from", "valid_to", "expires_at"):
            refused = await ana.post("/v1/memories", json={"text": TEXT, field: value})
            assert (refused.status_code, refused.json()["errors"][0]["field"].split(".")[-1]) == (422, field), reason
        for path in ("search", "context"):
            refused = await ana.post(f"/v1/memories/{path}", json={"query": "office", "as_of": value})
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "as_of"), reason
        for path in ("", "/mem_1", "/mem_1/history"):
            refused = await ana.get(f"/v1/memories{path}", params={"as_of": value})
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "as_of"), reason
        assert (await ana.get("/v1/memories")).json()["items"] == []


SAME = [
    ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000Z", "UTC"),
    ("2026-03-01T10:00:00+05:30", "2026-03-01T04:30:00.000Z", "half an hour of offset"),
    ("2026-03-29T01:30:00+01:00", "2026-03-29T00:30:00.000Z", "Berlin before its clocks go forward"),
    ("2026-03-29T03:30:00+02:00", "2026-03-29T01:30:00.000Z", "Berlin after they went"),
    ("2026-10-25T02:30:00+02:00", "2026-10-25T00:30:00.000Z", "the first 2:30 of that night"),
    ("2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00.000Z", "the second"),
]


@pytest.mark.parametrize(("given", "told", "reason"), SAME, ids=[reason for _, _, reason in SAME])
async def test_equal_instants_are_equal_however_they_are_written(
    plane: MemoryPlane, given: str, told: str, reason: str
) -> None:
    """M29. A time with its offset is kept as its instant and told in UTC; another spelling of it asks the same."""
    async with plane.asker(new_tenant()) as ana:
        id_ = await remember(ana, TEXT, valid_from=given, expires_at="2040-03-01T10:00:00+05:30")
        whole = (await ana.get(f"/v1/memories/{id_}")).json()
        assert (whole["valid_from"], whole["expires_at"]) == (told, "2040-03-01T04:30:00.000Z"), reason
        for spelled, status in ((given, 200), (told, 200), (just_before(told), 404)):
            found = await ana.get(f"/v1/memories/{id_}", params={"as_of": spelled})
            assert found.status_code == status, (reason, spelled)


def just_before(told: str) -> str:
    """A millisecond earlier, spelled in Kathmandu."""
    instant = datetime.fromisoformat(told) - timedelta(milliseconds=1)
    return instant.astimezone(timezone(timedelta(hours=5, minutes=45))).isoformat()


async def test_facts_follow_each_other_by_instants_and_not_by_their_spelling(each_desk: Desk) -> None:
    """M29. A fact valid from 10:00+05:30 comes before one from 06:00Z, whichever is said first."""
    desk = each_desk
    early, late = "2026-03-01T10:00:00+05:30", "2026-03-01T06:00:00Z"
    for order in ((early, late), (late, early)):
        fact: dict[str, Any] = {"subject": f"office {order[0]}", "attribute": "city"}
        for given in order:
            await desk.remember(f"{given} office {order[0]}", valid_from=datetime.fromisoformat(given), **fact)
        assert await desk.search(f"office {order[0]}", k=1) == [f"{late} office {order[0]}"]
        rows = await desk.rows(
            "SELECT status, valid_to FROM memory.memories WHERE tenant_id = $1 AND text = $2",
            f"{early} office {order[0]}",
        )
        assert [(row["status"], row["valid_to"]) for row in rows] == [("superseded", datetime.fromisoformat(late))]
