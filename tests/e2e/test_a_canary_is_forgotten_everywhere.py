"""One word is remembered in every way there is, deleted, and looked for in everything that the plane keeps."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from caisson.client.client import Client
from caisson.client.errors import CaissonError
from tests.support.planes import Plane
from tests.support.traces import analyze, as_superuser, files_with, tables_with

OTHERS = ("likes viola", "likes oboe", "likes harp")


@dataclass(kw_only=True)
class Canary:
    """A word that nobody else knows, and what holds it."""

    client: Client
    word: str = field(default_factory=lambda: f"canary{secrets.token_hex(5)}")
    ids: list[str] = field(default_factory=list)

    async def remember(self, text: str, **fields: object) -> str:
        result = await self.client.remember(text.format(self.word), idempotency_key=uuid4().hex, **fields)
        assert result.id is not None, result
        self.ids.append(result.id)
        return result.id

    async def live(self, text: str) -> str:
        """Remember an episode."""
        run = {"kind": "run", "run_id": f"run_{uuid4().hex}"}
        return await self.remember(text, layer="episodic", outcome="ok", subject="music", provenance=run)


async def test_it_is_nowhere_once_each_memory_of_it_is_deleted(plane: Plane) -> None:
    async def forget(canary: Canary) -> None:
        gone: set[str] = set()
        for memory_id in canary.ids:
            if memory_id not in gone:
                receipt = await canary.client.forget(memory_id)
                gone |= set(receipt.deleted)
                assert receipt.complete
        assert gone >= set(canary.ids)

    await tell_and_forget(plane, forget)


async def test_it_is_nowhere_once_its_user_is_erased(plane: Plane) -> None:
    async def forget(canary: Canary) -> None:
        assert (await canary.client.erase_user("ana")).complete

    await tell_and_forget(plane, forget)


async def tell_and_forget(plane: Plane, forget: Callable[[Canary], Awaitable[None]]) -> None:
    canary = Canary(client=plane.client_of(f"canaries {uuid4().hex[:8]}", "ana"))
    await spread(canary)
    await ask_for(canary)
    folder = plane.stack.folder
    database = as_superuser((folder.secrets("memory") / "memory_database_url").read_text())
    await analyze(database)
    assert "memory.memories" in await tables_with(canary.word, database), "the search finds what is there"
    await forget(canary)
    assert await tables_with(canary.word, database) == []
    assert files_with(canary.word, folder.path, but=folder.postgres / "data") == []


async def spread(canary: Canary) -> None:
    """Remember the word in every part of a memory, and have other memories made from it."""
    client, word = canary.client, canary.word
    session = await client.create_session()
    plain = await canary.remember(
        "{0} prefers tea",
        subject=f"{word} herself",
        attribute=f"{word} drink",
        tags=[word, f"of {word}"],
        metadata={word: [word], "note": f"said by {word}"},
        external_id=f"doc-{word}",
    )
    await canary.remember("what {0} said in the session", layer="session", provenance={"session_id": session.id})
    await canary.remember(
        "{0} is what a run made of it", provenance={"kind": "run", "run_id": "run_1", "source": plain}
    )
    corrected = await canary.remember("{0} is misspelt here")
    await client.change_memory(corrected, text=f"{word} is spelt right", tags=[word])
    await client.change_memory(corrected, text="nothing is said here any more", tags=[])
    home = {"subject": "somebody", "attribute": "home"}
    await canary.remember("{0} lives in Oslo", **home)
    await client.remember("somebody lives in Bergen", **home)
    reworded = await canary.live("{0} likes cello")
    await canary.live("{0} likes flute")
    for text in OTHERS:
        await client.remember(text, layer="episodic", outcome="ok", subject="music", provenance={"run_id": "run_2"})
    assert len((await client.consolidate()).created) == 1
    await client.change_memory(reworded, text="somebody likes cello")
    await client.distil([f"They say that {word} is misspelt here", f"{word} prefers tea", "corks are kept dry"])


async def ask_for(canary: Canary) -> None:
    """Read the word in every way, and have it refused in some."""
    client, word = canary.client, canary.word
    assert any(word in hit.memory.text for hit in (await client.recall(f"{word} tea", session_id="ses_1")).hits)
    context = await client.recall_context(f"what does {word} like?")
    assert word in context.text
    await client.give_feedback(context.retrieval_id, 0.5, idempotency_key=uuid4().hex)
    assert word in str([memory async for memory in client.export_user("ana")])
    assert [memory async for memory in client.list_memories(subject=f"{word} herself")]
    assert (await client.get_memory(f"doc-{word}")).text == f"{word} prefers tea"
    assert await client.memory_history(f"doc-{word}")
    refused = ({"scopes": [f"team:{word}"]}, {"metadata": {"user_id": word}}, {"metadata": {word: "\0"}})
    for fields in refused:
        with pytest.raises(CaissonError):
            await client.remember(f"{word} is refused", **fields)
    rejected = await client.remember(f"the password is {word}9!", idempotency_key=uuid4().hex)
    assert rejected.status == "rejected"
