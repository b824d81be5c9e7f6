"""The memory of a process that serves an embedded index with the default embedder: its MiB on standard output."""

import sys
from pathlib import Path

import psutil
import uvloop

from bench.memory_corpus import IDENTITY, LIMIT, TENANTS, WORDS, a_filter
from caisson.common.ids import TenantId
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.domain.indexing import IndexQuery

MIB = 1 << 20


async def _serve(folder: Path) -> float:
    index, embedder = await EdgeIndex.open(folder, IDENTITY), await MiniLm.load()
    for n in range(200):
        (vector,) = await embedder.embed([f"what does the customer {n} drink"])
        query = IndexQuery(dense=vector, text=f"word{n} word{n + 1}", limit=LIMIT)
        await index.search(query, a_filter(TenantId(f"tenant-{n % TENANTS}"), "u1"))
    await embedder.embed(embedder.chunks(" ".join(WORDS)))
    resident: int = psutil.Process().memory_info().rss
    await index.close()
    return resident / MIB


if __name__ == "__main__":
    sys.stdout.write(f"{uvloop.run(_serve(Path(sys.argv[1])))}\n")
