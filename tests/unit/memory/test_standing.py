"""What becomes of a draft by what stands in its place, as a table."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from caisson.common.ids import TenantId, UserId
from caisson.common.memories import NewMemory, Provenance
from caisson.memory.domain.drafting import Draft, draft
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.standing import Add, Confirm, Restate, Standing, settle

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PRINCIPAL = Principal(tenant=TenantId("acme"), user=UserId("ana"), granted=frozenset())
CITY = {"subject": "Ana", "attribute": "city"}


def a_draft(text: str = "Oslo", **values: Any) -> Draft:
    return draft(NewMemory(text=text, **values), PRINCIPAL, trust=1, now=NOW, field="memories.0")


def standing(like: Draft, **changes: Any) -> Standing:
    row = Standing(
        memory_id="mem_a",
        layer=like.layer,
        scope_key=like.scope_key,
        content_hash=like.wording.content_hash,
        context_key=like.context_key,
        fact_key=like.fact_key,
        valid_to=None,
        is_object=False,
        is_external=False,
    )
    return replace(row, **changes)


def episode(run: str, outcome: str = "ok") -> Draft:
    return a_draft(layer="episodic", outcome=outcome, provenance=Provenance(kind="run", run_id=run))


CONFIRMED = Confirm(memory_id="mem_a")
ALONE = Add(ended=())
RESTATED = Restate(memory_id="mem_a")
OBJECT = {"is_object": True}
OWN = {"is_object": True, "is_external": True}
INSTEAD = Add(ended=("mem_a",))
CASES = [
    (a_draft(), [], ALONE, "nothing stands there"),
    (a_draft(), [standing(a_draft("  OSLO "))], CONFIRMED, "the same text"),
    (a_draft(**CITY), [standing(a_draft(**CITY))], CONFIRMED, "the same fact"),
    (a_draft(), [standing(a_draft(**CITY))], CONFIRMED, "the stored one says more about it"),
    (a_draft(**CITY), [standing(a_draft())], INSTEAD, "the new one says more about it"),
    (a_draft(subject="Bo", attribute="city"), [standing(a_draft(**CITY))], ALONE, "the same text about another"),
    (a_draft(), [standing(a_draft(), valid_to=NOW)], INSTEAD, "it has ended, and is true again"),
    (a_draft(), [standing(a_draft(), valid_to=NOW + timedelta(days=1))], CONFIRMED, "it has not ended yet"),
    (episode("run_1"), [standing(episode("run_1"))], CONFIRMED, "the same episode"),
    (episode("run_2"), [standing(episode("run_1"))], ALONE, "it happened again"),
    (episode("run_1", "failed"), [standing(episode("run_1"))], ALONE, "to another end"),
    (a_draft(external_id="x"), [standing(a_draft(), **OWN)], CONFIRMED, "the object as it was"),
    (a_draft("Rome", external_id="x"), [standing(a_draft(), **OWN)], RESTATED, "a new text"),
    (a_draft(external_id="x"), [standing(a_draft(), **OBJECT)], ALONE, "another object says the same"),
    (a_draft(external_id="x"), [standing(a_draft())], ALONE, "somebody said it, and no object"),
    (a_draft(), [standing(a_draft(), **OBJECT)], CONFIRMED, "an object says it already"),
    (a_draft(), [standing(a_draft(), **OBJECT, valid_to=NOW)], ALONE, "an object that has ended stays as it is"),
    (a_draft(**CITY), [standing(a_draft(), **OBJECT)], ALONE, "a statement ends no object"),
]


@pytest.mark.parametrize(("new", "rows", "expected", "why"), CASES)
def test_a_draft_confirms_replaces_or_stands_alone(
    new: Draft, rows: list[Standing], expected: Add | Confirm | Restate, why: str
) -> None:
    assert settle(new, rows, NOW) == expected, why


def test_an_object_that_now_says_what_others_say_leaves_them_as_they_are() -> None:
    others = [standing(a_draft("Rome"), memory_id="mem_b"), standing(a_draft("Rome"), memory_id="mem_c", **OBJECT)]
    own = standing(a_draft(), **OWN)
    assert settle(a_draft("Rome", external_id="x"), [*others, own], NOW) == RESTATED
