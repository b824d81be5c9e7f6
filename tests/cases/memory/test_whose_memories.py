"""Whoever asks, and however the request is made up: it is answered from the memories of its own principal."""

import pytest
from pydantic import ValidationError

from caisson.common.ids import UserId
from caisson.common.memories import Caller
from caisson.common.recalls import Search
from caisson.memory.domain.principals import HardFilter, Principal
from tests.support.memory_desk import Desk
from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search


async def test_of_two_users_each_is_told_its_own_city(plane: MemoryPlane) -> None:
    """M1. The same question of two users of one tenant has one answer each."""
    tenant = new_tenant()
    async with plane.asker(tenant, "u1") as one, plane.asker(tenant, "u2") as two:
        await remember(one, "I live in Oslo")
        await remember(two, "I live in Quito")
        assert await search(one, "where do I live", k=5) == ["I live in Oslo"]
        assert await search(two, "where do I live", k=5) == ["I live in Quito"]


async def test_tenants_and_scopes_whose_names_begin_alike_see_nothing_of_each_other(plane: MemoryPlane) -> None:
    """M2. Of tenants `t1`, `t10`, `t1-x` with scopes `team/a`, `team/ab`, each name is compared whole."""
    places = [(tenant, scope) for tenant in ("t1", "t10", "t1-x") for scope in ("team/a", "team/ab")]
    for tenant, scope in places:
        async with plane.asker(tenant, scopes=scope) as member:
            await remember(member, f"the standup of {scope} of {tenant} is at nine", scopes=[scope])
    for tenant, scope in places:
        own = [f"the standup of {scope} of {tenant} is at nine"]
        async with plane.asker(tenant, "bo", scopes=scope) as member:
            assert await search(member, "when is the standup", k=100) == own
            assert [item["text"] for item in (await member.get("/v1/memories")).json()["items"]] == own


async def test_no_scope_is_neither_every_scope_nor_no_memory(plane: MemoryPlane) -> None:
    """M2. Without a grant one sees the tenant's and one's own; an empty name is refused, and so is a prefix."""
    tenant = new_tenant()
    async with plane.asker(tenant, scopes="team/a") as member:
        for scope in ("tenant", "user:ana", "team/a"):
            await remember(member, f"the standup that {scope} holds is at nine", scopes=[scope])
        for scopes in ([], [""], ["team/"]):
            refused = await member.post("/v1/memories", json={"text": "the standup is at ten", "scopes": scopes})
            assert refused.status_code == 422, scopes
    for granted in (None, "team", "team/", "t"):
        async with plane.asker(tenant, scopes=granted) as asker:
            told = await search(asker, "when is the standup", k=100)
            assert sorted(told) == [f"the standup that {scope} holds is at nine" for scope in ("tenant", "user:ana")]
    for granted in ("", "team/a,", ",", "team/a,,team/ab"):
        async with plane.asker(tenant, scopes=granted) as asker:
            answer = await asker.post("/v1/memories/search", json={"query": "when is the standup"})
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Caisson-Scopes"), granted


async def test_no_caller_without_scopes_and_no_filter_without_a_caller_can_be_made(desk: Desk) -> None:
    """M8. Scopes that are None are refused where a caller is read, and match nothing where they are compared."""
    named = {"tenant_id": desk.tenant, "user_id": "ana"}
    for claimed in (named, named | {"scopes": None}, {"user_id": "ana", "scopes": []}):
        with pytest.raises(ValidationError):
            Caller.model_validate(claimed)
    with pytest.raises(ValidationError):
        Search.model_validate({"query": "tea"})
    with pytest.raises(TypeError):
        HardFilter(now=desk.clock(), as_of=desk.clock())  # type: ignore[call-arg]
    nobody = Principal(tenant=desk.tenant, user=UserId("ana"), granted=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        nobody.allowed  # noqa: B018 - computing it is what fails
    await desk.store("the tide turns at noon", scopes=["tenant"])
    for allowed in ([], None, [None], [""], ["*"], ["%"]):
        assert await desk.rows("SELECT 1 FROM memory.readable($1, $2, now())", allowed) == []
    assert len(await desk.rows("SELECT 1 FROM memory.readable($1, '{tenant}', now())")) == 1


async def test_a_user_whose_first_write_met_no_embedder_is_told_nothing_of_others(desk: Desk) -> None:
    """M9. The embedder is away while u2 stores its first memory: u2 is told nothing of u1's, and later its own."""
    one, two = desk.caller("u1"), desk.caller("u2")
    await desk.store("u1 lives in Oslo", caller=one)
    desk.embedder.away = True
    await desk.store("u2 lives in Quito", caller=two)
    for desk.embedder.away in (True, False):
        assert "u1 lives in Oslo" not in await desk.search("lives in", caller=two)
    await desk.pool.execute("UPDATE memory.index_outbox SET not_before = now() WHERE tenant_id = $1", desk.tenant)
    await desk.indexer.relay(64)
    assert await desk.search("lives in", caller=two) == ["u2 lives in Quito"]


async def test_a_scope_that_nobody_granted_takes_no_memory(plane: MemoryPlane) -> None:
    """M12. Writing to a scope that does not exist is refused by its field, and nothing is stored."""
    tenant = new_tenant()
    async with plane.asker(tenant, scopes="team:a") as member:
        for scopes in (["team:none"], ["team:a", "team:none"], ["user:bo"], ["team"], ["TENANT"], ["mem:public"]):
            refused = await member.post("/v1/memories", json={"text": "the safe opens at six", "scopes": scopes})
            assert refused.status_code == 422, scopes
            assert refused.json()["errors"][0]["field"] == "memories.0.scopes"
        both = [{"text": "the safe opens at six"}, {"text": "the door opens at six", "scopes": ["team:none"]}]
        refused = await member.post("/v1/memories", json={"memories": both})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "memories.1.scopes")
    count = "SELECT count(*) FROM memory.memories WHERE tenant_id = $1"
    assert await plane.store.fetchval(count, tenant) == 0
