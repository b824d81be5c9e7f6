"""An id is no key: another's answers exactly as one that never was, by the same work; one's own works everywhere."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest

from caisson.common.errors import NotFound
from caisson.common.ids import new_id
from caisson.common.memories import ById, Caller, PatchMemory
from caisson.common.postgres import Pool, connect_pool, migrate
from caisson.common.recalls import Feedback
from caisson.memory.app import MIGRATIONS_DIR, SCHEMA
from tests.support.gateway import create_database
from tests.support.memory_desk import Desk, Outage, Turntable, WordEmbedder
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search

Asking = Callable[[], Awaitable[Any]]
PASSING_HEADERS = {"date", "x-request-id", "traceparent"}


def heard(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """What a caller could tell two answers apart by."""
    headers = {name: value for name, value in answer.headers.items() if name not in PASSING_HEADERS}
    return answer.status_code, answer.content, headers


async def of_memory(asker: httpx.AsyncClient, id_: str) -> list[httpx.Response]:
    """Everything that one may ask about an id."""
    path, past = f"/v1/memories/{id_}", {"as_of": "2030-01-01T00:00:00Z"}
    return [
        await asker.get(path),
        await asker.get(path, params=past),
        await asker.get(f"{path}/history"),
        await asker.get(f"{path}/history", params=past),
        await asker.patch(path, json={"text": "mine now"}),
        await asker.patch(path, json={"expected_version": 1, "importance": 1}),
        await asker.patch(path, json={"expected_version": 9, "status": "active"}),
        await asker.delete(path),
    ]


async def of_recall_or_receipt(asker: httpx.AsyncClient, id_: str) -> list[httpx.Response]:
    """Everything that one may say about a recall, or ask about a deletion."""
    bodies = [{"retrieval_id": id_, "reward": reward} for reward in (1, -1)]
    receipt = await asker.get(f"/v1/memories/receipts/{id_}")
    return [receipt, *[await asker.post("/v1/memories/feedback", json=body) for body in bodies]]


async def test_another_tenants_ids_answer_like_ids_that_never_were(plane: MemoryPlane) -> None:
    """M5. Get, patch, delete, history and feedback by A's ids with B's key: the bytes of a random id's answer."""
    tenant = new_tenant()
    async with plane.asker(tenant) as ana:
        gone = await remember(ana, "the safe opened with 44-55-66")
        receipt = (await ana.delete(f"/v1/memories/{gone}")).json()["id"]
        id_ = await remember(ana, "the safe opens with 11-22-33", external_id="safe")
        told = await ana.post("/v1/memories/search", json={"query": "what opens the safe"})
        recall, before = told.json()["retrieval_id"], (await ana.get(f"/v1/memories/{id_}")).json()
        other = new_tenant()
        for asker in (
            plane.asker(other),
            plane.asker(other, key=await plane.key_of(other)),
            plane.asker(tenant, "bo"),
            plane.asker(tenant, "bo", scopes="user:an,team:a"),
        ):
            async with asker:
                for known, unknown in ((id_, new_id("mem")), ("safe", "sofa"), (id_, str(uuid4()))):
                    answers = [*map(heard, await of_memory(asker, known))]
                    assert answers == [*map(heard, await of_memory(asker, unknown))]
                    assert {status for status, _, _ in answers} == {404}
                for known, unknown in ((recall, new_id("ret")), (receipt, new_id("job"))):
                    answers = [*map(heard, await of_recall_or_receipt(asker, known))]
                    assert answers == [*map(heard, await of_recall_or_receipt(asker, unknown))]
                    assert {status for status, _, _ in answers} == {404}
        assert (await ana.get(f"/v1/memories/{id_}")).json() == before
        reward = {"retrieval_id": recall, "reward": 1}
        assert (await ana.post("/v1/memories/feedback", json=reward)).json() == {"updated": [id_]}


@pytest.fixture
async def statements() -> list[str]:
    """Every statement that `watched` sends."""
    return []


@pytest.fixture
async def watched(postgres_url: str, word_index: Outage, statements: list[str]) -> AsyncIterator[Desk]:
    """A desk on a store of its own, all of whose connections are listened to."""
    word_index.away = False
    pool = await connect_pool(await create_database(postgres_url), application="tests", max_size=2)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    await listen(pool, statements)
    yield Desk(pool=pool, index=word_index, embedder=WordEmbedder(), clock=Turntable())
    await pool.close()


async def listen(pool: Pool, statements: list[str]) -> None:
    async with pool.acquire() as one, pool.acquire() as two:
        for connection in (one, two):
            connection.add_query_logger(lambda sent: statements.append(sent.query))


async def test_another_tenants_id_costs_the_work_of_one_that_never_was(watched: Desk, statements: list[str]) -> None:
    """M5. Where a reading of the clock could tell, the statements sent and the texts embedded are the same."""
    id_ = await watched.store("the safe opens with 11-22-33", external_id="safe")
    recall = (await watched.recalled("what opens the safe")).retrieval_id
    stranger = Caller(tenant_id=new_tenant(), user_id="ana", scopes=[])
    for caller in (stranger, watched.caller("bo"), watched.caller("bo", "team:a")):
        for known, unknown in ((id_, new_id("mem")), ("safe", "sofa")):
            pairs = zip(about(watched, caller, known), about(watched, caller, unknown), strict=True)
            for ask, ask_unknown in pairs:
                assert await work_of(watched, statements, ask) == await work_of(watched, statements, ask_unknown)
        works = []
        for retrieval in (recall, new_id("ret")):
            reward = Feedback(caller=caller, retrieval_id=retrieval, reward=1.0)
            works.append(await work_of(watched, statements, partial(watched.recall.feedback, reward)))
        assert works[0] == works[1]


def about(desk: Desk, caller: Caller, id_: str) -> list[Asking]:
    """Whatever may be asked about an id."""
    by_id, patch = ById(caller=caller, id=id_), PatchMemory(caller=caller, id=id_, text="mine now")
    return [
        partial(desk.reading.get, by_id),
        partial(desk.reading.history, by_id),
        partial(desk.remembering.correct, patch),
        partial(desk.forgetting.delete, by_id),
    ]


async def work_of(desk: Desk, statements: list[str], ask: Asking) -> tuple[list[str], list[str]]:
    """Return the statements and the embedded texts of a question whose answer is that nothing is there."""
    statements.clear()
    desk.embedder.embedded.clear()
    with pytest.raises(NotFound):
        await ask()
    assert statements
    return list(statements), list(desk.embedder.embedded)


async def test_the_id_of_an_answer_is_the_id_of_every_path(plane: MemoryPlane) -> None:
    """M20. The id that creating told is read, corrected and deleted by; a second deletion is not found."""
    async with plane.asker(new_tenant()) as ana:
        for fields in ({}, {"external_id": "./a.md_1"}, {"external_id": str(uuid4())}):
            text = f"the pump number {len(str(fields))} runs at night"
            made = await ana.post("/v1/memories", json={"text": text, **fields})
            id_ = made.json()["id"]
            path = f"/v1/memories/{id_}"
            assert made.headers["location"] == path
            assert (await ana.get(path)).json()["id"] == id_
            changed = await ana.patch(path, json={"importance": 0.9})
            assert (changed.status_code, changed.json()["id"]) == (200, id_)
            receipt = (await ana.delete(path)).json()
            assert (receipt["deleted"], receipt["count"], receipt["complete"]) == ([id_], 1, True)
            for gone in (await ana.delete(path), await ana.get(path), await ana.delete(f"/v1/memories/{uuid4()}")):
                assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_nothing_deletes_by_a_query(plane: MemoryPlane) -> None:
    """M20. What is deleted is named: no path deletes what a query finds, so that no top hit can go by mistake."""
    async with plane.asker(new_tenant()) as ana:
        await remember(ana, "the pump runs at night")
        for refused in (
            await ana.delete("/v1/memories", params={"query": "pump"}),
            await ana.delete("/v1/memories"),
            await ana.request("DELETE", "/v1/memories/search", json={"query": "pump"}),
            await ana.post("/v1/memories/forget", json={"query": "pump"}),
            await ana.delete("/v1/memories/*"),
        ):
            assert refused.status_code in {404, 405, 422}
        assert await search(ana, "when does the pump run") == ["the pump runs at night"]
        described = (await ana.get("/openapi.json")).json()["paths"]
        deleting = {path: operations["delete"] for path, operations in described.items() if "delete" in operations}
        about_memories = {path for path in deleting if "memories" in path}
        assert about_memories == {"/v1/memories/{memory_id}", "/v1/users/{user_id}/memories"}
        assert not [path for path in about_memories if "requestBody" in deleting[path]], json.dumps(deleting)
