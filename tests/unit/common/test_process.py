"""Nothing half-works in silence: a loop that crashes takes its process with it."""

import asyncio

import pytest

from caisson.common.process import Process


async def test_the_crash_of_a_loop_ends_the_process_as_failed() -> None:
    process = Process()
    others: list[str] = []

    async def crash() -> None:
        raise LookupError("a bug")

    async def turn() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            others.append("ended")

    process.spawn("steady", turn)
    await asyncio.sleep(0)
    process.spawn("broken", crash)
    await asyncio.wait_for(process.stopping.wait(), 2)
    with pytest.raises(SystemExit) as ended:
        await process.close()
    assert ended.value.code == 1
    assert isinstance(ended.value.__cause__, LookupError)
    assert others == ["ended"]


async def test_a_vital_connection_that_closed_ends_it_as_failed_and_a_stop_does_not() -> None:
    failed, stopped = Process(), Process()
    failed.fail()
    assert failed.stopping.is_set()
    with pytest.raises(SystemExit):
        await failed.close()
    stopped.stop()
    await stopped.close()
    assert stopped.stopping.is_set()
