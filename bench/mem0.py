"""mem0 beside Caisson: a process with packages of its own, which never enter this project's environment.

Scopes stand in its `user_id` and tenants in its `agent_id`, so that both sides look for the same memories.
"""

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "bench" / "mem0_program.py"
LINE_LIMIT_BYTES = 64 << 20
_INSTALL_WITHIN_S = 300
_END_WITHIN_S = 10

Store = Mapping[str, Any]


def local_qdrant(folder: Path) -> Store:
    """Its default: the Qdrant client's local mode, in a folder."""
    return {"provider": "qdrant", "config": {"path": str(folder / "qdrant"), "on_disk": True}}


def pgvector(url: str) -> Store:
    """A PostgreSQL that has the extension, with its own HNSW index."""
    return {"provider": "pgvector", "config": {"connection_string": url}}


def scoped(tenant: str, scopes: Iterable[str]) -> dict[str, Any]:
    """Return the filter of who may see these scopes of a tenant."""
    return {"agent_id": tenant, "OR": [{"user_id": scope} for scope in sorted(scopes)]}


class Mem0:
    """One memory of mem0 and its process."""

    def __init__(self, process: Process, versions: Mapping[str, str]) -> None:
        self._process = process
        self.versions = versions

    async def add(self, memories: Sequence[Mapping[str, Any]]) -> list[float]:
        """Add one after another; return the milliseconds of each."""
        ms: list[float] = (await self._ask(do="add", memories=memories))["ms"]
        return ms

    async def fill(self, memories: Sequence[Mapping[str, Any]]) -> None:
        """Store memories with known vectors."""
        await self._ask(do="fill", memories=memories)

    async def search(self, asked: Sequence[Mapping[str, Any]]) -> tuple[list[float], list[list[dict[str, Any]]]]:
        """Search one after another; return the milliseconds and the finds of each."""
        told = await self._ask(do="search", asked=asked)
        return told["ms"], told["found"]

    async def _ask(self, **asked: Any) -> dict[str, Any]:
        return await _exchange(self._process, asked)


@asynccontextmanager
async def mem0(folder: Path, store: Store) -> AsyncIterator[Mem0]:
    """Run it with a memory in a folder, without telemetry. The first time, uv installs what is locked."""
    folder.mkdir(parents=True)
    environment = os.environ | {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "PYTHONSAFEPATH": "1"}
    command = (_uv(), "run", "--quiet", "--locked", "--script", str(PROGRAM))
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environment, stdin=PIPE, stdout=PIPE, limit=LINE_LIMIT_BYTES
    )
    try:
        opening = _exchange(process, {"folder": str(folder), "store": store})
        yield Mem0(process, await asyncio.wait_for(opening, _INSTALL_WITHIN_S))
    finally:
        await _end(process)


async def _exchange(process: Process, asked: Mapping[str, Any]) -> dict[str, Any]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process has no pipes")
    process.stdin.write(json.dumps(asked).encode() + b"\n")
    await process.stdin.drain()
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError(f"{PROGRAM.name} ended; what it said is above")
    told: dict[str, Any] = json.loads(line)
    return told


async def _end(process: Process) -> None:
    """Close its input, which ends it, or kill it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_WITHIN_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _uv() -> str:
    ours = ROOT / ".tools" / "bin" / "uv"
    found = str(ours) if ours.exists() else shutil.which("uv")
    if found is None:
        raise RuntimeError("there is no uv: `make setup` installs it")
    return found
