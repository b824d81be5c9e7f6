"""The folder of the embedded index: one embedder, one shard in force.

`store.json` names the shard in force, since when its files hold what was deleted, and how much was written since it
was packed. It is replaced atomically, so that a crash at any moment leaves a whole index.
"""

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from caisson.common.errors import Misconfigured, Unavailable
from caisson.memory.adapters.embedder_stamp import refuse_other
from caisson.memory.adapters.heap import return_memory
from caisson.memory.adapters.qdrant_edge.packing import pack
from caisson.memory.adapters.qdrant_edge.pages import release
from caisson.memory.adapters.qdrant_edge.requests import configuration, payload_indexes

_STALE = 10_000
_STALE_SHARE = 0.3
_LOOSE = 5_000
_LOOSE_SHARE = 0.2
_ROOM_BYTES = 64 * 1024 * 1024
"""What an empty shard takes where its files cannot be sparse."""
_BLOCK_BYTES = 512


@dataclass(slots=True)
class Stored:
    """A shard, how many points that are no more its files still hold, and since when (seconds of the epoch).

    `loose` points were written since it was packed: they are searched two to three times as slowly.
    """

    name: str
    shard: edge.EdgeShard
    stale: int = 0
    stale_since: float | None = None
    loose: int = 0
    is_packed: bool = False

    def outdate(self, points: int, now: float) -> bool:
        """Count points that are no more; return whether they are the first."""
        first = bool(points) and self.stale_since is None
        if first:
            self.stale_since = now
        self.stale += points
        return first

    def is_due(self, points: int, now: float, *, erase_within_s: float) -> bool:
        """Whether so much of its points is loose or stale, or anything stale for so long, that it is to be copied."""
        if self.loose >= max(_LOOSE, _LOOSE_SHARE * points):
            return True
        if self.stale_since is None:
            return False
        age_s = now - self.stale_since
        clock_went_back = age_s < 0
        much = self.stale >= max(_STALE, _STALE_SHARE * points)
        return much or clock_went_back or age_s >= erase_within_s


class ShardFolder:
    """A folder that this process alone has open; `stamp` is what is known of the embedder. Everything here blocks."""

    def __init__(self, path: Path, stamp: dict[str, Any]) -> None:
        self._path = path
        self._stamp = stamp

    def open(self, *, rebuild: bool) -> Stored:
        """Return the shard in force, an empty one in a new folder.

        `rebuild` discards what another embedder wrote.

        Raises:
            Misconfigured: when another embedder wrote it, or it cannot be read.
        """
        known = self._known(rebuild=rebuild)
        if known is None:
            stored = self.fresh()
            stored.shard.flush()
            self.put_in_force(stored)
            return stored
        self._sweep(known["shard"])
        is_packed = known.get("packed", False)
        try:
            shard = self._loaded(known["shard"], is_packed=is_packed)
        except Exception as error:
            raise Misconfigured(
                f"the index in {self._path} cannot be read: {error}; remove the folder, it is rebuilt from PostgreSQL"
            ) from error
        loose = known.get("loose", shard.info().points_count)
        stale, since = known.get("stale", 0), known.get("stale_since", 0.0)
        return Stored(known["shard"], shard, stale, since, loose, is_packed)

    def fresh(self) -> Stored:
        """Return a new and empty shard, not yet in force."""
        name = f"shard-{os.urandom(8).hex()}"
        (self._path / name).mkdir(mode=0o700, parents=True)
        try:
            shard = edge.EdgeShard.create(str(self._path / name), configuration(self._stamp["dimensions"]))
            for index in payload_indexes():
                shard.update(index)
        except Exception:
            # It is tried again and again, and each attempt would leave its files.
            self._remove(name)
            raise
        return Stored(name, shard)

    def refuse_full(self, stored: Stored) -> None:
        """Raise Unavailable without room for a copy: mapped files of a full disk would end the process."""
        needed = _ROOM_BYTES + _held_bytes(self._path / stored.name)
        if (free := shutil.disk_usage(self._path).free) < needed:
            raise Unavailable(f"the index in {self._path} is not copied: that takes {needed} bytes, {free} are free")

    def pack(self, stored: Stored) -> bool:
        """Pack a fresh shard in a process of its own and open it again; return False where it must not be used.

        One whose packing was interrupted may hold points twice.
        """
        points = stored.shard.info().points_count
        stored.shard.close()
        return_memory()
        if not pack(self._path / stored.name, self._stamp["dimensions"]):
            return False
        stored.shard, stored.loose, stored.is_packed = self._loaded(stored.name, is_packed=True), 0, True
        return stored.shard.info().points_count == points

    def put_in_force(self, stored: Stored) -> None:
        """Let this shard be the one that is opened from now on, after a loss of power too, and remove the others."""
        self.note(stored)
        folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._sweep(stored.name)

    def abandon(self, stored: Stored) -> None:
        """Remove a fresh shard that will not be used."""
        self._remove(stored.name)

    def note(self, stored: Stored) -> None:
        """Write down that this shard is in force, and what is stale in it."""
        whole = {
            "embedder": self._stamp,
            "shard": stored.name,
            "stale": stored.stale,
            "stale_since": stored.stale_since,
            "loose": stored.loose,
            "packed": stored.is_packed,
        }
        draft = self._path / "store.json.new"
        with draft.open("w") as file:
            json.dump(whole, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path / "store.json")

    def release_pages(self) -> None:
        """Hold no more of the files resident than searches read."""
        release(self._path)

    def _loaded(self, name: str, *, is_packed: bool) -> edge.EdgeShard:
        return edge.EdgeShard.load(
            str(self._path / name), configuration(self._stamp["dimensions"], is_packed=is_packed)
        )

    def _known(self, *, rebuild: bool) -> dict[str, Any] | None:
        store = self._path / "store.json"
        if not store.exists():
            return None
        known: dict[str, Any] = json.loads(store.read_text())
        if rebuild and known["embedder"] != self._stamp:
            return None
        refuse_other(known["embedder"], self._stamp, where=f"the index in {self._path}")
        return known

    def _sweep(self, in_force: str) -> None:
        for shard in self._path.glob("shard-*"):
            if shard.name != in_force:
                self._remove(shard.name)

    def _remove(self, name: str) -> None:
        shutil.rmtree(self._path / name, ignore_errors=True)


def _held_bytes(shard: Path) -> int:
    """Return what a shard's files take of the disk, which is much less than their length."""
    held = 0
    for file in shard.rglob("*"):
        with suppress(FileNotFoundError):
            held += file.stat().st_blocks * _BLOCK_BYTES
    return held
