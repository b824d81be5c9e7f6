"""Nothing in a request but its key and its headers says who asks, and no name in it becomes part of a statement."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from caisson.common.errors import NotFound
from caisson.common.memories import ListMemories
from caisson.common.memory_upkeep import Distil
from tests.support.memory_desk import Desk
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search

HOSTILE_KEYS = ("x') OR 1=1 --", "a.b'", 'tenant_id" OR "1', "tenant_id", "$or", "must_not", "__proto__")
HOSTILE_VALUES = (*HOSTILE_KEYS, "') or true--", "%", "_", "*", "' UNION SELECT text FROM memory.memories --")

CLAIMS: list[dict[str, Any]] = [
    {"user_id": "bo"},
    {"userId": "bo"},
    {"tenant_id": "other"},
    {"caller": {"tenant_id": "other", "user_id": "bo", "scopes": []}},
    {"principal": "bo"},
    {"filter": {}},
    {"filter": None},
    {"namespace": ""},
]
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "", {"text": "the safe opens at six"}),
    ("POST", "/search", {"query": "the safe"}),
    ("POST", "/context", {"query": "the safe"}),
    ("POST", "/feedback", {"retrieval_id": "ret_1", "reward": 1}),
    ("POST", "/consolidate", {"dry_run": True}),
    ("POST", "/distil", {"candidates": ["the safe"]}),
    ("PATCH", "/mem_1", {"importance": 1}),
]
READS = ("", "/usage", "/mem_1", "/mem_1/history")


async def rows_of(store: asyncpg.Pool, tenant: str) -> list[dict[str, Any]]:
    sql = "SELECT * FROM memory.memories WHERE tenant_id = $1 ORDER BY memory_id"
    return [dict(row) for row in await store.fetch(sql, tenant)]


async def test_a_patch_cannot_move_a_memory(plane: MemoryPlane) -> None:
    """M4. A patch whose metadata, or body, names a tenant, a user or a scope is refused; the row is still A's."""
    tenant = new_tenant()
    async with plane.asker(tenant) as ana:
        id_ = await remember(ana, "Ana likes tea", metadata={"colour": "green"})
        before = await rows_of(plane.store, tenant)
        claims = {"tenant_id": "B", "user_id": "eve", "scope": "public"}
        refused = await ana.patch(f"/v1/memories/{id_}", json={"metadata": claims})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
        for name, value in [*claims.items(), ("scopes", ["public"]), ("owner_scope", "user:eve")]:
            in_metadata = await ana.patch(f"/v1/memories/{id_}", json={"metadata": {name: value}})
            assert in_metadata.status_code == 422, name
            beside = await ana.patch(f"/v1/memories/{id_}", json={name: value})
            assert (beside.status_code, beside.json()["errors"][0]["field"]) == (422, name)
        after = await rows_of(plane.store, tenant)
        kept = ("tenant_id", "user_id", "owner_scope", "scopes", "scope_key", "text")
        assert [{name: row[name] for name in kept} for row in after] == [
            {name: row[name] for name in kept} for row in before
        ]
        assert await search(ana, "what does Ana like") == ["Ana likes tea"]
    assert await rows_of(plane.store, "B") == []


async def test_who_asks_stands_in_the_key_and_nowhere_else(plane: MemoryPlane) -> None:
    """M6. With A's key, `user_id` B in body or query is refused: the principal stays A's, and B's are not told."""
    tenant = new_tenant()
    async with plane.asker(tenant, "bo") as bo:
        await remember(bo, "the safe of Bo opens at six")
    async with plane.asker(tenant, "ana", key=await plane.key_of(tenant)) as ana:
        for method, path, body in BODIES:
            for claim in CLAIMS:
                refused = await ana.request(method, f"/v1/memories{path}", json=body | claim)
                assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, next(iter(claim)))
        for path in READS:
            for name in ("user_id", "tenant_id", "scopes", "Caisson-User"):
                refused = await ana.get(f"/v1/memories{path}", params={name: "bo"})
                assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, name)
        for name, value in (("Caisson-Tenant", "other"), ("Caisson-Scopes", "user:bo")):
            assert (await ana.get("/v1/memories", headers={name: value})).status_code == 403
        assert await search(ana, "when does the safe open") == []
        assert (await ana.get("/v1/memories")).json()["items"] == []


def properties(schema: Any) -> Iterator[str]:
    """Yield the name of every property below a schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from properties(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from properties(part)


async def test_no_operation_takes_a_path_of_the_server(plane: MemoryPlane) -> None:
    """M6. Nothing ingests a file by its path: no body has a field for one, and one that is sent is refused."""
    async with plane.asker(new_tenant()) as ana:
        described = (await ana.get("/openapi.json")).json()["components"]["schemas"]
        named = {name.lower() for schema in described.values() for name in properties(schema)}
        assert not [name for name in named if name.endswith(("path", "file", "folder", "uri"))]
        for method, path, body in BODIES:
            for name in ("doc_path", "path", "file", "url"):
                refused = await ana.request(method, f"/v1/memories{path}", json=body | {name: "../../etc/passwd"})
                assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, name)


async def test_a_path_is_a_text_like_any_other(desk: Desk, tmp_path: Path) -> None:
    """M6. `../../etc/passwd` and a symlink, wherever a text may stand, are never followed."""
    secret = tmp_path / "outside"
    secret.write_text("canary-of-a-file")
    link = tmp_path / "inside"
    link.symlink_to(secret)
    for number, path in enumerate(("../../etc/passwd", "/etc/passwd", f"file://{link}", str(link))):
        text = f"the notes of box {number} are kept in {path}"
        id_ = await desk.store(text, external_id=path, metadata={"doc": path})
        assert (await desk.get(path)).text == text
        told = await desk.recalled(f"notes kept in {path}")
        assert id_ in {hit.memory.id for hit in told.hits}
        distilled = await desk.distilling.distil(Distil(caller=desk.caller(), candidates=[f"read {path}"], target=1))
        assert distilled.selected == [f"read {path}"]
    for table in ("memories", "history"):
        rows = await desk.rows(f"SELECT t::text AS row FROM memory.{table} t WHERE tenant_id = $1")
        assert not [row for row in rows if "canary" in row["row"] or "root:x" in row["row"]]


async def test_a_name_in_a_request_never_becomes_part_of_a_statement(plane: MemoryPlane) -> None:
    """M11. Filter keys that would be SQL are refused, in query and body; no row is told, and the table is intact."""
    tenant, other = new_tenant(), new_tenant()
    async with plane.asker(other) as stranger, plane.asker(tenant) as ana:
        await remember(stranger, "the vault code is 4711")
        await remember(ana, "the vault is in the cellar", subject="vault")
        before = await rows_of(plane.store, tenant), await rows_of(plane.store, other)
        for key in HOSTILE_KEYS:
            for path in READS:
                await refuses(ana.get(f"/v1/memories{path}", params={key: "1"}), key)
            for method, path, body in BODIES:
                await refuses(ana.request(method, f"/v1/memories{path}", json=body | {key: "1"}), key)
        assert (await rows_of(plane.store, tenant), await rows_of(plane.store, other)) == before
        for key in HOSTILE_KEYS[:3]:
            id_ = await remember(ana, f"the key {key} is a name", metadata={key: "1"}, tags=[key])
            kept = (await ana.get(f"/v1/memories/{id_}")).json()
            assert (kept["metadata"], kept["tags"]) == ({key: "1"}, [key]), "as metadata it is a name, kept as it is"


async def refuses(asked: Any, key: str) -> None:
    answer: httpx.Response = await asked
    assert answer.status_code == 422, (key, answer.text)
    assert answer.json()["errors"][0]["field"] == key


async def test_filters_are_values_and_never_statements(desk: Desk) -> None:
    """M11. Values that would be SQL or patterns match nothing, in lists, searches, ids and cursors."""
    await desk.store("Likes tea", subject="Ana")
    for evil in HOSTILE_VALUES:
        page = await desk.reading.page(ListMemories(caller=desk.caller(), subject=evil))
        assert page.items == []
        assert await desk.search(evil + " zebra") == []
        with pytest.raises(NotFound):
            await desk.get(evil)
        with pytest.raises(NotFound):
            await desk.reading.page(ListMemories(caller=desk.caller(), before=evil))
    assert len(await desk.rows("SELECT 1 FROM memory.memories WHERE tenant_id = $1")) == 1
