"""One reader's stream: live output stands inside its step, and a silent stream says that it lives."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import cast

from caisson.common.ids import Ids, RunId, StepId
from caisson.common.leases import OutputChunk
from caisson.common.subjects import step_output
from caisson.gateway.api.event_stream import COMMENT_EVERY_S, EventStream
from caisson.gateway.domain.runs import EventRecord, News, Runs

Meanwhile = list[str]
SUBJECT = str(step_output(Ids(run=RunId("run_1"), step=StepId("stp_1"))))


def told(seq: int, name: str) -> EventRecord:
    return EventRecord(seq=seq, type=name, data={"step_id": "stp_1"}, occurred_at=datetime.now(UTC))


class ScriptedRuns:
    """Tells events read by read; with each read comes output that arrives while the ledger is asked."""

    def __init__(self, *reads: tuple[list[EventRecord], Meanwhile]) -> None:
        self.reads = list(reads)
        self.stream: EventStream | None = None

    async def events(self, *_: object, **__: object) -> list[EventRecord]:
        events, meanwhile = self.reads.pop(0) if self.reads else ([], [])
        for text in meanwhile:
            self.hear(text)
        return events

    def hear(self, text: str) -> None:
        assert self.stream is not None
        chunk = OutputChunk(step_id="stp_1", stream="stdout", offset=0, text=text)
        self.stream.receive(SUBJECT, chunk.model_dump_json().encode())


class NoNews:
    """News that is always there at once."""

    def wake(self) -> None:
        """Nobody sleeps."""

    async def next(self, **_: object) -> bool:
        await asyncio.sleep(0)
        return False


def stream_of(
    runs: ScriptedRuns, *, stopping: asyncio.Event | None = None, comment_every_s: float = 60
) -> EventStream:
    runs.stream = EventStream(
        cast("Runs", runs),
        cast("News", NoNews()),
        stopping or asyncio.Event(),
        RunId("run_1"),
        0,
        comment_every_s=comment_every_s,
    )
    return runs.stream


async def names(frames: AsyncIterator[bytes]) -> list[str]:
    """Return the events' types, and the text of output."""
    text = b"".join([frame async for frame in frames]).decode()
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        output = OutputChunk.model_validate_json(fields["data"]).text if fields["event"] == "step.output" else ""
        found.append(output or fields["event"])
    return found


async def test_output_that_came_before_the_start_was_read_is_told_after_it() -> None:
    runs = ScriptedRuns(([told(1, "step.started")], []), ([told(2, "step.finished"), told(3, "run.finished")], []))
    stream = stream_of(runs)
    runs.hear("early")
    assert await names(stream.frames()) == ["step.started", "early", "step.finished", "run.finished"]


async def test_output_that_comes_while_the_ledger_is_read_is_neither_lost_nor_told_too_soon() -> None:
    runs = ScriptedRuns(
        ([], ["before its start"]),
        ([told(1, "step.started")], ["second"]),
        ([told(2, "step.finished"), told(3, "run.finished")], ["last"]),
    )
    expected = ["step.started", "before its start", "second", "last", "step.finished", "run.finished"]
    assert await names(stream_of(runs).frames()) == expected


async def test_output_of_a_step_that_has_ended_is_not_told() -> None:
    runs = ScriptedRuns(
        ([told(1, "step.started"), told(2, "step.finished")], []), ([], ["late"]), ([told(3, "run.finished")], [])
    )
    assert await names(stream_of(runs).frames()) == ["step.started", "step.finished", "run.finished"]


async def test_what_is_no_output_is_not_told() -> None:
    runs = ScriptedRuns(([], []), ([told(1, "run.finished")], []))
    stream = stream_of(runs)
    elsewhere = OutputChunk(step_id="stp_2", stream="stdout", offset=0, text="another step's")
    for subject, body in ((SUBJECT, b"\xff"), (SUBJECT, elsewhere.model_dump_json().encode()), ("not.ours", b"{}")):
        stream.receive(subject, body)
    assert await names(stream.frames()) == ["run.finished"]


async def test_a_silent_stream_gets_a_comment_in_every_interval() -> None:
    assert COMMENT_EVERY_S == 15
    began = asyncio.get_running_loop().time()
    stopping = asyncio.Event()
    comments = []
    async for frame in stream_of(ScriptedRuns(), stopping=stopping, comment_every_s=0.02).frames():
        comments.append(frame)
        if len(comments) == 5:
            stopping.set()
    assert comments == [b": still here\n\n"] * 5
    assert asyncio.get_running_loop().time() - began >= 0.1
