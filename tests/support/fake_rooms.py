"""Rooms without a host: they know three commands and keep the promises of the domain's `Rooms`.

Known: `echo WORD`, `exit CODE`, and `sleep SECONDS`, which lasts until it is killed.
"""

import asyncio

from caisson.common.errors import Unavailable
from caisson.common.outcome import Cancelled, Exited, NotStarted, Outcome, Output, TimedOut
from caisson.runner.domain.boxes import BoxCommand, BoxResult, LiveOutput, Place, Refusal


class FakeRoom:
    """One room. `running` is the command that is running now."""

    def __init__(self, place: Place, refused: tuple[Refusal, ...]) -> None:
        self.place = place
        self.commands: list[BoxCommand] = []
        self.running: BoxCommand | None = None
        self.killed = 0
        self.left = False
        self._refused = refused
        self._cancelled = asyncio.Event()

    async def execute(self, command: BoxCommand, live: LiveOutput) -> BoxResult:
        """Play a command."""
        assert not self.left
        self.commands.append(command)
        self._cancelled.clear()
        self.running = command
        try:
            return await self._play(command, live)
        except asyncio.CancelledError:
            self.killed += 1
            raise
        finally:
            self.running = None

    def cancel(self) -> None:
        """Kill the running command."""
        if self.running is not None:
            self._cancelled.set()

    async def leave(self) -> None:
        """Leave."""
        self.cancel()
        self.left = True

    async def _play(self, command: BoxCommand, live: LiveOutput) -> BoxResult:
        verb, _, operand = command.script.strip().partition(" ")
        match verb:
            case "echo":
                data = operand.strip('"').encode() + b"\n"
                live("stdout", 0, data)
                return self._result(Exited(exit_code=0), data)
            case "exit":
                return self._result(Exited(exit_code=int(operand)))
            case "sleep":
                return await self._sleep(command)
            case _:
                return self._result(NotStarted(reason=f"the fake does not know {verb!r}"))

    async def _sleep(self, command: BoxCommand) -> BoxResult:
        try:
            await asyncio.wait_for(self._cancelled.wait(), command.timeout_s)
        except TimeoutError:
            return self._result(TimedOut(reason=f"the step's time limit of {command.timeout_s:g} s passed"))
        self.killed += 1
        return self._result(Cancelled())

    def _result(self, outcome: Outcome, stdout: bytes = b"") -> BoxResult:
        output = Output(text=stdout.decode(), bytes=len(stdout))
        return BoxResult(outcome=outcome, stdout=output, stderr=Output(), duration_ms=1, refused=self._refused)


class FakeRooms:
    """Makes rooms. `fault` makes `check` fail, `broken` makes `enter` fail, `refused` goes into every result."""

    def __init__(self) -> None:
        self.rooms: list[FakeRoom] = []
        self.fault: str | None = None
        self.broken: str | None = None
        self.refused: tuple[Refusal, ...] = ()

    async def enter(self, place: Place) -> FakeRoom:
        """Make a room."""
        if self.broken is not None:
            raise Unavailable(self.broken)
        room = FakeRoom(place, self.refused)
        self.rooms.append(room)
        return room

    async def check(self) -> None:
        """Fail with the fault."""
        if self.fault is not None:
            raise Unavailable(self.fault)

    def running(self, run_id: str) -> FakeRoom | None:
        """Return the run's room while a command runs in it."""
        for room in self.rooms:
            if room.place.run_id == run_id and room.running is not None:
                return room
        return None
