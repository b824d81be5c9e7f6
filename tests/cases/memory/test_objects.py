"""The product's own ids, and documents kept in step by them: an object changes and ends by its own id alone."""

import re
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from caisson.common.memories import NewMemory
from tests.support.memory_desk import Desk
from tests.support.memory_indexes import LOCAL_MODE_WARNINGS
from tests.support.memory_plane import MemoryPlane, new_tenant

pytestmark = LOCAL_MODE_WARNINGS

IDS = [
    ("mem-1", "nearly one of ours"),
    ("./a.md_1", "a path"),
    ("6F1C2F0E-5A57-5D0B-9D55-5F3A0C8F4C11", "a UUID in capitals"),
    ("6f1c2f0e-5a57-5d0b-9d55-5f3a0c8f4c11", "the same in small letters is another"),
    ("0", "a number"),
    (str(2**63), "a number past 64 bits"),
    ("a/history", "what looks like a path of ours"),
    ("a..b/../c", "what looks like a path elsewhere"),
    ("café ☕?&#%2F", "what URLs must quote"),
]


async def test_any_id_of_the_product_comes_back_as_it_was(plane: MemoryPlane) -> None:
    """M47. Each becomes a UUIDv5 and is read, changed and deleted by the product's own id.

    The row derives it from tenant and id; the design adds the owner, because two users may use the same id.
    """
    tenant = new_tenant()
    ids: set[str] = set()
    async with plane.asker(tenant) as product, plane.asker(tenant, "bo") as other:
        for external, why in IDS:
            body = {"text": why, "external_id": external}
            made = await product.post("/v1/memories", json=body)
            assert made.status_code == 201, why
            assert UUID(made.json()["id"]).version == 5
            ids.add(made.json()["id"])
            path = f"/v1/memories/{quote(external, safe='')}"
            told = (await _raw(product, "GET", path)).json()
            assert (told.get("id"), told.get("external_id")) == (made.json()["id"], external), why
            history = (await _raw(product, "GET", f"{path}/history")).json()["entries"]
            assert [entry["memory_id"] for entry in history] == [told["id"]]
            changed = await _raw(product, "PATCH", path, json={"importance": 0.9})
            assert (changed.status_code, changed.json()["external_id"]) == (200, external)
            bos = await other.post("/v1/memories", json=body)
            ids.add(bos.json()["id"])
            assert (await _raw(product, "DELETE", path)).json()["deleted"] == [made.json()["id"]], why
            assert (await _raw(other, "GET", path)).json()["id"] == bos.json()["id"]
    assert len(ids) == 2 * len(IDS)


@pytest.mark.parametrize("external", [0, 2**63, 1.5, True, ["a"], {}])
async def test_an_id_that_is_no_text_is_refused(plane: MemoryPlane, external: Any) -> None:
    """M47. A number is not taken for its digits: two clients that write it differently would meet two objects."""
    async with plane.asker(new_tenant()) as product:
        refused = await product.post("/v1/memories", json={"text": "Likes tea", "external_id": external})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "external_id"


async def _raw(product: httpx.AsyncClient, method: str, path: str, **values: Any) -> httpx.Response:
    """Send a path as it is written, where the client would shorten `..`."""
    url = product.base_url.copy_with(raw_path=path.encode())
    return await product.send(product.build_request(method, url, **values))


def passages(file: str, *texts: str) -> list[NewMemory]:
    """A file as a caller stores it: a passage is an object, named by its file and place."""
    return [NewMemory(text=text, external_id=f"{file}#{at}") for at, text in enumerate(texts)]


A = ("The lathe is in hall one", "The press is in hall two", "The kiln is in hall three", "The saw is in hall four")
B = ("Tea is served at five", "Coffee is served at nine")
C = ("The gate closes at ten", "Tea is served at five")


async def stored(desk: Desk) -> dict[str, tuple[str, int]]:
    rows = await desk.rows("SELECT external_id, text, version FROM memory.memories WHERE tenant_id = $1")
    return {row["external_id"]: (row["text"], row["version"]) for row in rows}


async def test_indexing_one_source_changes_no_other(desk: Desk) -> None:
    """M52. a.md is cut to half and indexed alone: its passages change and go; those of b.md and c.md stay.

    Nothing is removed for not being mentioned: the caller names what is gone.
    """
    await desk.remember(*passages("a.md", *A), *passages("b.md", *B), *passages("c.md", *C))
    before = await stored(desk)
    assert len(before) == 8, "a passage that two files share is there for each of them"
    results = await desk.remember(*passages("a.md", A[0], "The press is broken"))
    assert [result.status for result in results] == ["duplicate_of", "superseded"]
    for place in (2, 3):
        await desk.delete(f"a.md#{place}")
    after = await stored(desk)
    assert {name: after[name] for name in after if not name.startswith("a.md")} == {
        name: before[name] for name in before if not name.startswith("a.md")
    }
    assert {name: after[name][0] for name in after if name.startswith("a.md")} == {
        "a.md#0": A[0],
        "a.md#1": "The press is broken",
    }
    assert A[2] not in await desk.search("where is the kiln")


async def test_a_full_sync_moves_what_was_renamed_and_drops_what_is_gone(desk: Desk) -> None:
    """M52. b.md is now d.md and c.md is gone: the caller stores first, then deletes what it no longer has.

    In the other order the text would be forgotten before it is said again, and a forgotten text is not learned anew.
    """
    await desk.remember(*passages("b.md", *B), *passages("c.md", *C))
    results = await desk.remember(*passages("d.md", *B))
    assert [result.status for result in results] == ["created", "created"]
    for gone in ("b.md#0", "b.md#1", "c.md#0", "c.md#1"):
        await desk.delete(gone)
    assert {name: text for name, (text, _) in (await stored(desk)).items()} == {"d.md#0": B[0], "d.md#1": B[1]}
    assert await desk.search("when is tea served", k=1) == [B[0]]
    assert await desk.search("when does the gate close") == []
    for _ in ("changed", "and changed back"):
        await desk.remember(*passages("d.md", "Tea is served at six"))
        [back] = await desk.remember(*passages("d.md", B[0]))
        assert back.status == "superseded", "a text that lives on elsewhere was not forgotten"


async def test_a_source_that_cannot_be_read_removes_nothing(plane: MemoryPlane) -> None:
    """M52. A listing that comes up empty is refused as a request and touches no memory."""
    async with plane.asker(new_tenant()) as product:
        kept = {"memories": [{"text": text, "external_id": f"a.md#{at}"} for at, text in enumerate(A)]}
        assert (await product.post("/v1/memories", json=kept)).status_code == 200
        assert (await product.post("/v1/memories", json={"memories": []})).status_code == 422
        assert re.fullmatch("40[45]", str((await product.delete("/v1/memories")).status_code))
        assert (await product.delete("/v1/memories/a.md")).status_code == 404, "a file's name is no prefix of ids"
        assert len((await product.get("/v1/memories")).json()["items"]) == len(A)


async def test_an_object_says_what_another_says_and_neither_ends_the_other(each_desk: Desk) -> None:
    """M52. Two objects come to the same text; each is still read, changed and deleted by itself."""
    await each_desk.remember(*passages("a.md", "The lathe is in hall one"), *passages("b.md", "The lathe is new"))
    await each_desk.remember(*passages("b.md", "The lathe is in hall one"))
    texts = [(await each_desk.get(f"{name}.md#0")).text for name in "ab"]
    assert texts == ["The lathe is in hall one"] * 2
    [plain] = await each_desk.remember("the lathe is in hall one")
    assert plain.status == "duplicate_of", "said without an id, it confirms one of them"
    await each_desk.delete("a.md#0")
    assert (await each_desk.get("b.md#0")).status == "active"
    assert await each_desk.search("where is the lathe") == ["The lathe is in hall one"]
