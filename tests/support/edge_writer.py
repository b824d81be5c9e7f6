"""A process that writes to an embedded index and tells each acknowledged memory, until it is killed."""

import asyncio
import sys
from itertools import count
from pathlib import Path

from caisson.common.ids import TenantId
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from tests.support.memory_points import IDENTITY, a_point


async def write(folder: Path, tenant: TenantId) -> None:
    index = await EdgeIndex.open(folder, IDENTITY)
    for number in count():
        points = [a_point(tenant, f"crate {number} {n}", f"mem-{number}-{n}") for n in range(10)]
        await index.upsert(points)
        print(number, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), TenantId(sys.argv[2])))
