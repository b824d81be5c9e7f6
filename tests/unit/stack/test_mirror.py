"""`--verbose` shows what the services write, line by line."""

import asyncio
import io
from pathlib import Path

from caisson.stack.mirror import mirror_logs
from tests.support.eventually import eventually


async def test_new_whole_lines_are_shown_with_the_name_of_their_log(tmp_path: Path) -> None:
    old = tmp_path / "gateway.log"
    old.write_text("from an earlier start\n")
    output = io.StringIO()
    mirror = asyncio.create_task(mirror_logs(tmp_path, output))
    await asyncio.sleep(0)
    with old.open("a") as log:
        log.write("first\nhalf a")
        log.flush()
        (tmp_path / "runner-1.log").write_text("new file\n")
        await eventually(lambda: output.getvalue().count("\n") == 2)
        log.write(" line\n")
    await eventually(lambda: output.getvalue().count("\n") == 3)
    mirror.cancel()
    assert sorted(output.getvalue().splitlines()) == [
        "gateway | first",
        "gateway | half a line",
        "runner-1 | new file",
    ]
