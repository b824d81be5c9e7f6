"""A stack of stand-ins as a program of its own: `supervisor_program FOLDER` prints what `describe` says."""

import asyncio
import json
import sys
from pathlib import Path

from caisson.stack.stack import Stack
from tests.support import stand_in


async def main(data: Path) -> None:
    async with Stack(data, programs=stand_in.PROGRAMS) as stack:
        sys.stdout.write(json.dumps(stack.describe()) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
