"""Reading server-sent events as any reader of the API would: frame by frame, comments included."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event; `id` is None on a live one."""

    type: str
    id: int | None
    data: dict[str, Any]


@dataclass
class Reader:
    """An open stream. It remembers what it has read."""

    response: httpx.Response
    events: list[Event] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lines = self.response.aiter_lines()

    async def next(self) -> Event | None:
        """Return the next event, or None at the stream's end."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                assert name not in fields, "one value per field"
                fields[name] = value
            elif fields:
                return self._take(fields)
        assert not fields, "the stream was cut inside an event"
        return None

    async def until(self, wanted: Callable[[Event], bool]) -> Event:
        """Read up to and including an event."""
        while (event := await self.next()) is not None:
            if wanted(event):
                return event
        raise AssertionError(f"the stream ended after {[event.type for event in self.events]}")

    async def rest(self) -> list[Event]:
        """Read to the end and return everything read, from the start of this stream."""
        while await self.next() is not None:
            """Go on."""
        return self.events

    def _take(self, fields: dict[str, str]) -> Event:
        number = int(fields["id"]) if "id" in fields else None
        event = Event(type=fields["event"], id=number, data=json.loads(fields["data"]))
        self.events.append(event)
        return event


@asynccontextmanager
async def events_of(product: httpx.AsyncClient, run_id: str, *, after: int | None = None) -> AsyncIterator[Reader]:
    """Open a run's events, from the start or after an event."""
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    async with product.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as response:
        assert response.status_code == 200, (await response.aread()).decode()
        yield Reader(response)
