"""Which ends a corrected memory may get."""

from datetime import UTC, datetime, timedelta

import pytest

from caisson.common.errors import CaissonError, Conflict, InvalidInput
from caisson.memory.domain.ends import End, Endless, check_expires_at, check_valid_to
from caisson.memory.domain.layers import Layer

MARCH, APRIL, MAY = (datetime(2026, month, 1, tzinfo=UTC) for month in (3, 4, 5))
DAY = timedelta(days=1)

TRUTHS: list[tuple[End, datetime | None, type[CaissonError] | None, str]] = [
    (APRIL, None, None, "an end after the beginning"),
    (MARCH, None, InvalidInput, "true for no time"),
    (Endless(), None, None, "nothing follows"),
    (MAY, MAY, None, "up to the next fact"),
    (MAY, APRIL, Conflict, "into the next fact"),
    (Endless(), APRIL, Conflict, "over the next fact"),
]


@pytest.mark.parametrize(("end", "next_from", "refused", "reason"), TRUTHS, ids=[row[3] for row in TRUTHS])
def test_a_truth_ends_before_the_next_one_begins(
    end: End, next_from: datetime | None, refused: type[CaissonError] | None, reason: str
) -> None:
    if refused is None:
        return check_valid_to(end, valid_from=MARCH, next_from=next_from)
    with pytest.raises(refused, match="valid_to"):
        check_valid_to(end, valid_from=MARCH, next_from=next_from)
    return None


KEPT: list[tuple[End, Layer, datetime | None, str, str]] = [
    (Endless(), Layer.SEMANTIC, None, "kept", "a statement may be kept for good"),
    (Endless(), Layer.SESSION, None, "refused", "a session's memory may not"),
    (APRIL - DAY, Layer.SESSION, None, "kept", "a session's memory for thirty days"),
    (APRIL, Layer.SESSION, None, "refused", "a session's memory for longer"),
    (APRIL, Layer.SEMANTIC, APRIL, "kept", "a summary as long as its first source"),
    (MAY, Layer.SEMANTIC, APRIL, "refused", "a summary longer than that"),
    (Endless(), Layer.SEMANTIC, APRIL, "refused", "a summary for good, of a source that is not"),
]


@pytest.mark.parametrize(("end", "layer", "sources_end", "outcome", "reason"), KEPT, ids=[row[4] for row in KEPT])
def test_nothing_outlives_what_bounds_it(
    end: End, layer: Layer, sources_end: datetime | None, outcome: str, reason: str
) -> None:
    if outcome == "kept":
        return check_expires_at(end, layer=layer, now=MARCH, sources_end=sources_end)
    with pytest.raises(InvalidInput) as refused:
        check_expires_at(end, layer=layer, now=MARCH, sources_end=sources_end)
    assert [item.field for item in refused.value.fields] == ["expires_at"]
    return None
