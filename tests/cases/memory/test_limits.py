"""A quota holds exactly, names itself, and stops nothing that adds nothing."""

import asyncio
from dataclasses import replace

import pytest

from caisson.common.errors import QuotaExceeded
from caisson.memory.domain.quotas import Holding, Quotas
from tests.support.memory_desk import Desk
from tests.support.memory_plane import MemoryPlane, new_tenant

LIMIT = 300


async def test_of_twenty_parallel_writes_at_the_last_place_one_succeeds(plane: MemoryPlane) -> None:
    """M54. The others are 429 with limit and usage; editing works at the limit, and a deletion makes a place."""
    async with plane.asker(new_tenant()) as product:
        for start in range(0, LIMIT - 1, 100):
            texts = [f"shelf {n} holds box {n}" for n in range(start, min(start + 100, LIMIT - 1))]
            stored = await product.post("/v1/memories", json={"memories": [{"text": text} for text in texts]})
            assert {result["status"] for result in stored.json()["results"]} == {"created"}
        bodies = [{"text": f"the last place goes to guest {n}"} for n in range(20)]
        answers = await asyncio.gather(*(product.post("/v1/memories", json=body) for body in bodies))
        assert sorted(answer.status_code for answer in answers) == [201] + [429] * 19
        told = {(answer.json()["code"], answer.json()["detail"]) for answer in answers if answer.status_code == 429}
        assert told == {("quota_exceeded", "the user's quota is 300 memories; 300 are used, 1 more were asked")}
        usage = (await product.get("/v1/memories/usage")).json()
        assert (usage["user_rows"], usage["user_rows_limit"]) == (LIMIT, LIMIT)
        made = next(answer.json()["id"] for answer in answers if answer.status_code == 201)
        edited = await product.patch(f"/v1/memories/{made}", json={"text": "the last place is taken"})
        assert edited.status_code == 200
        assert (await product.post("/v1/memories", json={"text": "shelf 7 holds box 7"})).status_code == 200
        assert (await product.delete(f"/v1/memories/{made}")).status_code == 200
        assert (await product.post("/v1/memories", json={"text": "a place is free again"})).status_code == 201
        assert (await product.post("/v1/memories", json={"text": "and taken again"})).status_code == 429


async def test_the_users_limit_lies_inside_the_tenants(desk: Desk) -> None:
    """M54. A user ends at its own limit while the tenant has room, and at the tenant's while it has room itself."""
    quotas = Quotas(user=Holding(rows=3, bytes=1_000), tenant=Holding(rows=5, bytes=2_000))
    tight, bo = replace(desk, quotas=quotas), desk.caller("bo")
    await tight.remember("note 1", "note 2", "note 3")
    with pytest.raises(QuotaExceeded, match="user's quota is 3 memories; 3 are used"):
        await tight.remember("note 4")
    await tight.remember("note 1", "note 2", caller=bo)
    with pytest.raises(QuotaExceeded, match="tenant's quota is 5 memories; 5 are used"):
        await tight.remember("note 3", caller=bo)
