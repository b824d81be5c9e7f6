"""The folder of the embedded index: one process, one embedder, one shard in force.

`store.json` names the shard in force and is replaced atomically, so that a crash at any moment leaves a whole index.
"""

import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from caisson.common.errors import Misconfigured
from caisson.memory.adapters.embedder_stamp import refuse_other, stamp
from caisson.memory.adapters.qdrant_edge_requests import configuration, payload_indexes
from caisson.memory.domain.indexing import EmbedderIdentity


class ShardFolder:
    """A folder that this process alone has open. Everything here blocks."""

    def __init__(self, path: Path, identity: EmbedderIdentity) -> None:
        self._path = path
        self._stamp = stamp(identity)
        self._dimensions = identity.dimensions
        self._lock: int | None = None
        self.holes = 0

    def open(self, *, rebuild: bool) -> edge.EdgeShard:
        """Lock the folder and return its shard, an empty one in a new folder.

        `rebuild` discards what another embedder wrote.

        Raises:
            Misconfigured: when another process has it, another embedder wrote it, or it cannot be read.
        """
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(self._path)
        try:
            return self._shard(self._known(rebuild=rebuild))
        except BaseException:
            self.release()
            raise

    def fresh(self) -> edge.EdgeShard:
        """Return a new and empty shard, not yet in force."""
        path = self._path / f"shard-{os.urandom(8).hex()}"
        shard = edge.EdgeShard.create(_made(path), configuration(self._dimensions))
        for index in payload_indexes():
            shard.update(index)
        self._newest = path
        return shard

    def put_in_force(self) -> None:
        """Let the newest fresh shard be the one that is opened from now on, and remove the others."""
        self._in_force, self.holes = self._newest.name, 0
        self.note()
        self._sweep()

    def abandon(self) -> None:
        """Remove a fresh shard that will not be used."""
        self._sweep()

    def note(self) -> None:
        """Write down which shard is in force, and how many deleted points it still holds."""
        whole = {"embedder": self._stamp, "shard": self._in_force, "holes": self.holes}
        draft = self._path / "store.json.new"
        with draft.open("w") as file:
            json.dump(whole, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path / "store.json")

    def release(self) -> None:
        """Let another process have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _known(self, *, rebuild: bool) -> dict[str, Any] | None:
        store = self._path / "store.json"
        if not store.exists():
            return None
        known: dict[str, Any] = json.loads(store.read_text())
        if rebuild and known["embedder"] != self._stamp:
            return None
        refuse_other(known["embedder"], self._stamp, where=f"the index in {self._path}")
        return known

    def _shard(self, known: dict[str, Any] | None) -> edge.EdgeShard:
        if known is None:
            shard = self.fresh()
            shard.flush()
            self.put_in_force()
            return shard
        self._in_force, self.holes = known["shard"], known["holes"]
        self._sweep()
        try:
            return edge.EdgeShard.load(str(self._path / self._in_force), configuration(self._dimensions))
        except Exception as error:
            raise Misconfigured(
                f"the index in {self._path} cannot be read: {error}; remove the folder, it is rebuilt from PostgreSQL"
            ) from error

    def _sweep(self) -> None:
        for shard in self._path.glob("shard-*"):
            if shard.name != self._in_force:
                shutil.rmtree(shard, ignore_errors=True)


def _locked(folder: Path) -> int:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 32, 0).decode() or "?"
        os.close(lock)
        raise Misconfigured(
            f"the index in {folder} is open in process {holder}: the embedded index serves one process; "
            "stop that one, or run several with MEMORY_INDEX=server"
        ) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    return lock


def _made(path: Path) -> str:
    path.mkdir(mode=0o700)
    return str(path)
