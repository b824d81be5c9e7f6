"""Following a run's events over any number of connections.

Invariant: a reconnect asks for what comes after the last durable event that was handed out, never for less.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx

from caisson.client.answers import read_json, unreachable
from caisson.client.calls import Call
from caisson.client.errors import (
    ApiError,
    CaissonError,
    ProtocolViolation,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from caisson.client.models import FINISHED_RUN, RunEvent
from caisson.client.retrying import back_off_s
from caisson.client.sse import EventTooLarge, Parser, ServerEvent
from caisson.client.transport import Transport

COMMENT_INTERVAL_S = 15.0
SILENCE_LIMIT_S = COMMENT_INTERVAL_S + 5.0
RUN_FINISHED = "run.finished"
_NO_CONTENT = 204
_MEDIA_TYPE = "text/event-stream"


class Follower:
    """One reader of one run's events. `cursor` is the last durable id; None means from the start."""

    def __init__(
        self,
        transport: Transport,
        run_path: str,
        *,
        after: int | str | None,
        silence_limit_s: float = SILENCE_LIMIT_S,
    ) -> None:
        self._transport = transport
        self._run_path = run_path
        self._silence_limit_s = silence_limit_s
        self._retries = transport.retries
        self._run_was_finished = False
        self._failures = 0
        self._progress_at = 0.0
        self._at_the_end = False
        self.cursor: str | None = None if after is None else str(after)

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        """Yield each event once, in order, until `run.finished`.

        Raises:
            EventsExpired: the cursor is past the retention.
            Unreachable: no progress for longer than the retries allow.
        """
        self._progress_at = asyncio.get_running_loop().time()
        while not self._at_the_end:
            try:
                async with aclosing(self._connection()) as connection:
                    async for event in connection:
                        yield event
            except httpx.RequestError as error:
                await self._pause(unreachable(error, self._call()))
            except (Unreachable, ServerError, TooManyRequests) as error:
                await self._pause(error)

    async def _connection(self) -> AsyncGenerator[RunEvent, None]:
        parser = Parser(self.cursor or "")
        told_anything = False
        async with self._transport.open(self._call()) as response:
            self._at_the_end = response.status_code == _NO_CONTENT
            if not self._at_the_end and _MEDIA_TYPE not in response.headers.get("Content-Type", ""):
                raise ProtocolViolation(f"{response.request.url} does not answer with an event stream")
            async for chunk in response.aiter_bytes():
                self._progress_at = asyncio.get_running_loop().time()
                for event in _feed(parser, chunk):
                    told_anything = True
                    self._failures = 0
                    self.cursor = (self.cursor if event.id is None else event.id) or None
                    self._at_the_end = event.type == RUN_FINISHED
                    yield read_event(event)
                    if self._at_the_end:
                        return
                self.cursor = parser.last_event_id or None
        if not self._at_the_end:
            await self._ended_early(told_anything=told_anything)

    async def _ended_early(self, *, told_anything: bool) -> None:
        """A stream without `run.finished`: nothing comes after the cursor of a finished run, else connect again."""
        if not told_anything and self._run_was_finished:
            self._at_the_end = True
            return
        if not told_anything:
            run = read_json(await self._transport.send(Call(method="GET", path=self._run_path)))
            self._run_was_finished = run.get("status") in FINISHED_RUN
        await self._pause(ProtocolViolation("the event stream ended before the run"))

    def _call(self) -> Call:
        headers = {"Accept": _MEDIA_TYPE, "Accept-Encoding": "identity", "Cache-Control": "no-store"}
        if self.cursor is not None:
            headers["Last-Event-ID"] = self.cursor
        return Call(
            method="GET", path=f"{self._run_path}/events", headers=headers, read_timeout_s=self._silence_limit_s
        )

    async def _pause(self, cause: CaissonError) -> None:
        self._failures += 1
        delay_s = back_off_s(self._failures, self._retries)
        if isinstance(cause, ApiError):
            delay_s = max(delay_s, cause.retry_after_s or 0.0)
        silent_s = asyncio.get_running_loop().time() - self._progress_at
        if silent_s + delay_s > self._retries.stream_give_up_after_s:
            raise cause
        await asyncio.sleep(delay_s)


def _feed(parser: Parser, chunk: bytes) -> list[ServerEvent]:
    try:
        return parser.feed(chunk)
    except EventTooLarge as error:
        raise ProtocolViolation(str(error)) from error


def read_event(event: ServerEvent) -> RunEvent:
    """Read one event of a run; its id is its number in the run.

    Raises:
        ProtocolViolation: its data is not a JSON object.
    """
    try:
        data = json.loads(event.data)
    except ValueError as error:
        raise ProtocolViolation(f"the data of event {event.type} is not JSON") from error
    if not isinstance(data, dict):
        raise ProtocolViolation(f"the data of event {event.type} is not an object")
    seq = int(event.id) if event.id and event.id.isascii() and event.id.isdigit() else None
    return RunEvent(seq=seq, type=event.type, data=data)
