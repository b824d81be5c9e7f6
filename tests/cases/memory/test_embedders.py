"""Vectors of two embedders never meet: another one is refused with both named, and may take over on purpose."""

from pathlib import Path
from uuid import uuid4

import pytest

from caisson.common.memories import Caller
from caisson.stack.nats import EmbeddedNats
from tests.support.embeddings_server import embeddings_server
from tests.support.eventually import eventually
from tests.support.gateway import create_database
from tests.support.memory_points import DIMENSIONS
from tests.support.memory_process import Ground, asking

TEXT = "Ana prefers tea over coffee"
WORDLLAMA = {"MEMORY_EMBEDDER": "wordllama"}


@pytest.fixture
async def empty(postgres_url: str, nats: EmbeddedNats, tmp_path: Path) -> Ground:
    return Ground(folder=tmp_path, database_url=await create_database(postgres_url), nats=nats)


async def test_another_length_is_refused_with_both_numbers_and_takes_over_on_purpose(empty: Ground) -> None:
    """M46. A store of 384 dimensions refuses an embedder of 256; once told to embed anew, it is found by that one."""
    caller = Caller(tenant_id=f"tenant {uuid4().hex[:8]}", user_id="ana", scopes=[])
    async with asking(empty.nats) as gateway:
        first = empty.service()
        await first.start()
        [stored] = await gateway.remember(caller, TEXT)
        await first.stop()

        said = await empty.refuse(**WORDLLAMA)
        assert "384 dimensions" in said
        assert "256 dimensions" in said
        assert "--reembed" in said

        second = empty.service("second", "--reembed", **WORDLLAMA)
        await second.start()

        async def is_found() -> bool:
            return await gateway.search(caller, "what does Ana like to drink: tea") == [TEXT]

        await eventually(is_found, within_s=20)
        receipt = await gateway.delete(caller, stored.id)
        assert (receipt.vectors, receipt.complete) == (1, True), "one point of the new length, and none of the old"
        await second.stop()
    said = await empty.refuse()
    assert said.index("256 dimensions") < said.index("384 dimensions"), "now the first one is the other"


async def test_another_model_of_the_same_length_is_refused_too(empty: Ground) -> None:
    """M46. The length says nothing of the model: the digest decides, and both models are named."""
    async with embeddings_server() as server:
        endpoint = {
            "MEMORY_EMBEDDER": "http",
            "MEMORY_EMBEDDER_URL": server.url,
            "MEMORY_EMBEDDER_DIMENSIONS": str(DIMENSIONS),
        }
        first = empty.service("first", MEMORY_EMBEDDER_MODEL="model-one", **endpoint)
        await first.start()
        await first.stop()
        said = await empty.refuse(MEMORY_EMBEDDER_MODEL="model-two", **endpoint)
        assert "model-one" in said
        assert "model-two" in said
        again = empty.service("again", MEMORY_EMBEDDER_MODEL="model-one", **endpoint)
        await again.start()
        await again.stop()
