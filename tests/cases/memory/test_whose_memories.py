"""Whoever asks, however the request is made up: it is answered from the memories of its own principal."""

from tests.support.memory_plane import MemoryPlane, new_tenant, remember, search


async def test_of_two_users_each_is_told_its_own_city(plane: MemoryPlane) -> None:
    """M1. The same question of two users of one tenant has one answer each."""
    tenant = new_tenant()
    async with plane.asker(tenant, "u1") as one, plane.asker(tenant, "u2") as two:
        await remember(one, "I live in Oslo")
        await remember(two, "I live in Quito")
        assert await search(one, "where do I live", k=5) == ["I live in Oslo"]
        assert await search(two, "where do I live", k=5) == ["I live in Quito"]
