"""The process of an embedded index, as whoever started it finds it."""

from pathlib import Path

import psutil


def engine_of(folder: Path) -> psutil.Process:
    """The child of ours that has the folder's lock."""
    lock = str(folder / "lock")
    [engine] = [child for child in psutil.Process().children() if lock in {file.path for file in child.open_files()}]
    return engine


def resident_bytes(folder: Path, part: str) -> int:
    """How much of the folder's files with `part` in their paths the engine holds in memory."""
    maps = engine_of(folder).memory_maps(grouped=False)
    return sum(mapped.rss for mapped in maps if mapped.path.startswith(str(folder)) and part in mapped.path)
