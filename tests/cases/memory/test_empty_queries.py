"""A query that asks for nothing is refused, before anything is embedded, and never means everything."""

from typing import Any

import pytest

from caisson.common.errors import EmptyQuery
from caisson.common.recalls import Search
from tests.support.memory_desk import Desk
from tests.support.memory_plane import MemoryPlane, new_tenant, remember

CONTENTLESS = [
    ("", "nothing"),
    ("  ", "blanks"),
    ("\n", "a line end"),
    ("\u200b", "a zero-width space"),
    ("the and of", "stop words"),
    ("🎉🚀", "emoji"),
]


@pytest.mark.parametrize(("query", "why"), CONTENTLESS, ids=[row[1] for row in CONTENTLESS])
async def test_nothing_is_embedded_for_it(desk: Desk, query: str, why: str) -> None:
    """M43. Search and context refuse a query without content before the embedder is asked."""
    await desk.store("I live in Oslo")
    before = list(desk.embedder.embedded)
    for ask in (desk.recall.search, desk.recall.context):
        with pytest.raises(EmptyQuery):
            await ask(Search(caller=desk.caller(), query=query))
    assert desk.embedder.embedded == before, why


BODIES: list[tuple[dict[str, Any], str]] = [
    *(({"query": query}, why) for query, why in CONTENTLESS),
    ({"query": None}, "null"),
    ({}, "no query"),
    ({"query": [""]}, "a list"),
]


async def test_it_is_422_and_names_the_query(plane: MemoryPlane) -> None:
    """M43. Over HTTP every one of them is a 422 on the field `query`, and tells no memory."""
    async with plane.asker(new_tenant()) as product:
        await remember(product, "I live in Oslo")
        for path in ("search", "context"):
            for body, why in BODIES:
                answer = await product.post(f"/v1/memories/{path}", json=body)
                assert answer.status_code == 422, why
                assert {error["field"] for error in answer.json()["errors"]} == {"query"}, why
                assert "Oslo" not in answer.text
