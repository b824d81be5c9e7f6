"""Output is bytes: kept in part, counted in full, shown live with true offsets, and never held without bound."""

import asyncio
import resource
from itertools import pairwise
from time import monotonic

from caisson.runner.adapters.host import HostRooms
from caisson.runner.domain.boxes import StreamName
from tests.support.boxes import execute, room


async def test_streams_are_separate_and_exact(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        result = await execute(here, "printf abc; printf 'err\\n' >&2; printf '🦀 日本'")
    assert (result.stdout.text, result.stdout.bytes) == ("abc🦀 日本", 3 + 4 + 1 + 6)
    assert (result.stderr.text, result.stderr.bytes) == ("err\n", 4)
    assert not result.stdout.truncated
    assert not result.stdout.lossy


async def test_bytes_that_are_no_text_are_replaced_and_said_so(rooms: HostRooms) -> None:
    async with room(rooms) as here:
        result = await execute(here, "printf '\\377\\376\\000ok'")
    assert (result.stdout.text, result.stdout.bytes, result.stdout.lossy) == ("\ufffd\ufffd\ufffdok", 5, True)


async def test_one_very_long_line_is_whole(rooms: HostRooms) -> None:
    async with room(rooms, output_kib=256) as here:
        result = await execute(here, "head -c 200000 /dev/zero | tr '\\0' x; echo done >&2")
    assert result.stdout.text == "x" * 200_000
    assert result.stderr.text == "done\n"


async def test_a_long_output_keeps_whole_lines_of_its_head_and_tail(rooms: HostRooms) -> None:
    async with room(rooms, output_kib=1) as here:
        result = await execute(here, "seq -f 'line %06g' 1000")
    lines = result.stdout.text.splitlines()
    assert result.stdout.bytes == 12_000
    assert result.stdout.truncated
    assert lines[0] == "line 000001"
    assert lines[-1] == "line 001000"
    assert all(len(line) == len("line 000001") for line in lines)
    assert result.stdout.gap_at is not None
    assert result.stdout.text[: result.stdout.gap_at].endswith("\n")


async def test_a_huge_output_does_not_grow_the_runner(rooms: HostRooms) -> None:
    size = 512 << 20
    async with room(rooms, cpus=2) as here:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await execute(here, f"yes | head -c {size}", timeout_s=60)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.stdout.bytes == size
    assert result.stdout.truncated
    assert grown_kib < 64 << 10


async def test_a_flood_leaves_the_event_loop_to_others(rooms: HostRooms) -> None:
    async with room(rooms) as flood, room(rooms, uid=10_002, run_id="run_2") as neighbour:
        flooding = asyncio.create_task(execute(flood, "yes", timeout_s=0.5))
        slowest = 0.0
        while not flooding.done():
            began = monotonic()
            await execute(neighbour, "true")
            slowest = max(slowest, monotonic() - began)
        assert (await flooding).outcome.kind == "timed_out"
    assert slowest < 0.3


async def test_live_output_comes_in_order_with_true_offsets(rooms: HostRooms) -> None:
    pieces: list[tuple[StreamName, int, bytes, float]] = []
    async with room(rooms) as here:
        script = "for i in {1..20}; do echo line $i; sleep 0.01; done; echo end >&2"
        result = await execute(here, script, live=lambda *piece: pieces.append((*piece, monotonic())))
    out = [piece for piece in pieces if piece[0] == "stdout"]
    assert b"".join(data for _, _, data, _ in out).decode() == result.stdout.text
    position = 0
    for _, offset, data, _ in out:
        assert offset == position
        position += len(data)
    times = [at for *_, at in out]
    assert all(later - earlier > 0.04 for earlier, later in pairwise(times[:-1]))
    assert [piece[:3] for piece in pieces if piece[0] == "stderr"] == [("stderr", 0, b"end\n")]


async def test_a_flood_shows_live_as_pieces_with_gaps(rooms: HostRooms) -> None:
    pieces: list[tuple[int, bytes]] = []
    size = 4 << 20
    async with room(rooms) as here:
        script = f"for i in {{1..4}}; do head -c {size >> 2} /dev/zero | tr '\\0' $i; sleep 0.1; done"
        result = await execute(here, script, live=lambda _, offset, data: pieces.append((offset, data)))
    assert result.stdout.bytes == size
    assert sum(len(data) for _, data in pieces) < size / 4
    quarter = size >> 2
    for offset, data in pieces:
        assert data[:1] == str(offset // quarter + 1).encode()
