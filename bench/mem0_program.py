# /// script
# requires-python = ">=3.11,<3.12"
# dependencies = ["caisson-memory", "mem0ai==2.2.1", "psycopg[binary]>=3.3", "psycopg-pool>=3.3"]
#
# [tool.uv.sources]
# caisson-common = { path = "../libs/common", editable = true }
# caisson-memory = { path = "../services/memory", editable = true }
# ///
"""mem0 as a library, in a process of its own: a JSON line in, a JSON line out. It embeds with Caisson's embedder.

`bench/mem0.py` runs it in an environment of its own, of the packages that are locked beside it.
Invariant: whatever in it asks for a name or connects to a network address fails.
"""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from hashlib import md5
from importlib.metadata import version
from time import perf_counter
from typing import Any, TypeVar
from uuid import uuid4

from mem0 import Memory

from caisson.memory.adapters.minilm import MiniLm

COLLECTION = "bench"
_NETWORK = (socket.AF_INET, socket.AF_INET6)

Spoken = dict[str, Any]
T = TypeVar("T")


class OurEmbedder:
    """The service's embedder where mem0 calls its own: same model, same code, as many threads, no HTTP between."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._model = self._loop.run_until_complete(MiniLm.load())

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Embed one text."""
        del memory_action
        (vector,) = self._loop.run_until_complete(self._model.embed([text]))
        return list(vector)

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """Embed several."""
        del memory_action
        return [list(vector) for vector in self._loop.run_until_complete(self._model.embed(texts))]


class Program:
    """One memory, and what can be asked of it."""

    def __init__(self, folder: str, store: Spoken) -> None:
        common = {"collection_name": COLLECTION, "embedding_model_dims": MiniLm.identity.dimensions}
        never_called = {"provider": "openai", "config": {"api_key": "none", "openai_base_url": "http://127.0.0.1:9"}}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": store["provider"], "config": common | store["config"]},
                "embedder": never_called,
                "llm": never_called,
                "history_db_path": f"{folder}/history.db",
            }
        )
        self._memory.embedding_model = OurEmbedder()

    def add(self, memories: list[Spoken]) -> Spoken:
        """Add each by itself, without a language model; return what each took."""
        timed = [_timed(partial(self._memory.add, item.pop("text"), infer=False, **item)) for item in memories]
        return {"ms": [ms for ms, _ in timed]}

    def fill(self, memories: list[Spoken]) -> Spoken:
        """Put memories whose vectors are known into its store, with the payload that an addition writes."""
        self._memory.vector_store.insert(
            vectors=[item.pop("vector") for item in memories],
            payloads=[_payload(**item) for item in memories],
            ids=[str(uuid4()) for _ in memories],
        )
        return {}

    def search(self, asked: list[Spoken]) -> Spoken:
        """Search one after another; return what each took and found."""
        timed = [_timed(partial(self._memory.search, **item)) for item in asked]
        return {"ms": [ms for ms, _ in timed], "found": [answer["results"] for _, answer in timed]}


def _payload(text: str, user_id: str, agent_id: str) -> Spoken:
    now = datetime.now(UTC).isoformat()
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    scope = {"user_id": user_id, "agent_id": agent_id, "role": "user"}
    return scope | {"data": text, "hash": digest, "created_at": now, "updated_at": now, "text_lemmatized": text}


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = perf_counter()
    result = work()
    return (perf_counter() - began) * 1_000, result


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.getaddrinfo" or (event == "socket.connect" and arguments[0].family in _NETWORK):
        raise PermissionError(f"{event} {arguments[1:]}: this program stays off the network")


def _serve(lines: Iterable[str]) -> None:
    """Open what the first line says, then do what the others ask."""
    lines = iter(lines)
    program = Program(**json.loads(next(lines)))
    _tell({name: version(name) for name in ("mem0ai", "qdrant-client", "psycopg")})
    jobs: dict[str, Callable[..., Spoken]] = {"add": program.add, "fill": program.fill, "search": program.search}
    for line in lines:
        asked = json.loads(line)
        _tell(jobs[asked.pop("do")](**asked))


def _tell(answer: Spoken) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.addaudithook(_refuse_network)
    logging.disable(logging.WARNING)
    _serve(sys.stdin)
