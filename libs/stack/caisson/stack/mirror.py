"""Showing the services' logs while they are written."""

import asyncio
from pathlib import Path
from typing import TextIO

_POLL_S = 0.2


async def mirror_logs(folder: Path, output: TextIO) -> None:
    """Copy every line that is added to a log in `folder`, with the log's name before it, until cancelled."""
    seen = {log: log.stat().st_size for log in _logs(folder)}
    while True:
        for log in _logs(folder):
            seen[log] = _copy(log, seen.get(log, 0), output)
        await asyncio.sleep(_POLL_S)


def _logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def _copy(log: Path, offset: int, output: TextIO) -> int:
    """Copy the whole lines after `offset` and return where they end."""
    if log.stat().st_size < offset:  # a new log in its place
        offset = 0
    with log.open("rb") as stream:
        stream.seek(offset)
        added = stream.read()
    whole = added[: added.rfind(b"\n") + 1]
    for line in whole.decode(errors="replace").splitlines():
        print(f"{log.stem} | {line}", file=output)
    return offset + len(whole)
