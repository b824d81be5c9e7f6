"""A run as it happens: step headers, streamed output, outcome marks.

Invariant: at the end, the whole output of every step was written once, whatever part of it came live.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from rich.text import Text

from caisson.client.client import Client
from caisson.client.commands.terminal import Terminal, foreign
from caisson.client.commands.wording import duration_text, outcome_text
from caisson.client.errors import EventsExpired, ProtocolViolation
from caisson.client.models import Outcome, Output, Run, RunEvent, Step, StepStatus, StreamName
from caisson.client.pages import parse
from caisson.client.playback import Complete, Playback, Rest

_STREAMS: tuple[StreamName, StreamName] = ("stdout", "stderr")
_MARKS: dict[str, tuple[str, str]] = {
    StepStatus.SUCCEEDED: ("✓", "green"),
    StepStatus.FAILED: ("✗", "red"),
    StepStatus.CANCELLED: ("■", "yellow"),
    StepStatus.UNKNOWN: ("?", "magenta"),
}


@dataclass
class Narration:
    """Tells one run. `titles` are the steps' commands by index; a quiet one tells no headers and no good ends."""

    client: Client
    terminal: Terminal
    run: Run
    titles: list[str] = field(default_factory=list)
    quiet: bool = False

    def __post_init__(self) -> None:
        self._playbacks: dict[tuple[str, str], Playback] = defaultdict(Playback)
        self._started: set[str] = set()
        self._announced: set[str] = set()
        self._written: set[str] = set()
        self._places = {step.id: step.index for step in self.run.steps}

    async def follow(self) -> Run:
        """Tell the run until its end and return it."""
        try:
            async for event in self.client.events(self.run.id):
                await self.tell(event)
        except (EventsExpired, ProtocolViolation) as error:
            self._note("!", "yellow", f"no live events ({error.code}); waiting for the end")
        run = await self.client.wait(self.run.id)
        for step in run.steps:
            if step.id not in self._written and step.outcome is not None and step.started_at is not None:
                self._finish(step)
        return run

    async def tell(self, event: RunEvent) -> None:
        """Tell one event."""
        step_id = str(event.data.get("step_id", ""))
        match event.type:
            case "step.started":
                self._start(step_id)
            case "step.output":
                self._show(step_id, event)
            case "step.finished" if step_id not in self._written:
                await self._finish_from(event, step_id)
            case "run.requeued":
                self._note("↻", "yellow", "the worker was lost; the run is queued again")
            case "run.waiting":
                self._note("…", "yellow", "waiting")
            case "security.command_blocked":
                pass  # the step's outcome says the same
            case kind if kind.startswith("security."):
                self._note("⚑", "red", f"{kind.removeprefix('security.')}: {_what_was_blocked(event)}")

    def _start(self, step_id: str) -> None:
        if step_id in self._started:
            for name in _STREAMS:
                self._playbacks.pop((step_id, name), None)
            self._note("↻", "yellow", "the step runs again from its start")
            self._announced.discard(step_id)
        self._started.add(step_id)
        self._announce(step_id)

    def _announce(self, step_id: str) -> None:
        """Write a step's header, once: its output may come before the news of its start."""
        if self.quiet or step_id in self._announced:
            return
        self._announced.add(step_id)
        index = self._places.get(step_id, 0)
        title = self.titles[index] if index < len(self.titles) else step_id
        first_line, _, more = title.strip().partition("\n")
        head = Text.assemble(("▶", "cyan"), (f" {index + 1}/{len(self._places) or '?'} ", "bold"))
        self.terminal.note(head + foreign(first_line + (" …" if more else ""), "dim"))

    def _show(self, step_id: str, event: RunEvent) -> None:
        name, offset, text = (event.data.get(key) for key in ("stream", "offset", "text"))
        if step_id not in self._written and name in _STREAMS and isinstance(offset, int) and isinstance(text, str):
            self._announce(step_id)
            self.terminal.write(name, self._playbacks[step_id, name].take(offset, text))

    async def _finish_from(self, event: RunEvent, step_id: str) -> None:
        steps = [parse(Step, {"status": StepStatus.UNKNOWN} | event.data | {"id": step_id})]
        if any(self._is_incomplete(steps[0], name) for name in _STREAMS):
            run = await self.client.get_run(self.run.id)
            steps = [step for step in run.steps if step.id == step_id]
        for step in steps:
            self._finish(step)

    def _is_incomplete(self, step: Step, name: StreamName) -> bool:
        output = getattr(step, name)
        return not isinstance(output, Output) or output.bytes > self._playbacks[step.id, name].shown_bytes

    def _finish(self, step: Step) -> None:
        self._written.add(step.id)
        self._announce(step.id)
        for name in _STREAMS:
            output = getattr(step, name)
            if isinstance(output, Output):
                self._show_rest(step, name, output)
        self._mark(step)

    def _show_rest(self, step: Step, name: StreamName, output: Output) -> None:
        playback = self._playbacks[step.id, name]
        match playback.finish(output):
            case Complete():
                pass
            case Rest(data=data, gap=gap):
                if gap:
                    self._note("!", "yellow", f"only a part of {name}'s {output.bytes} bytes is kept")
                self.terminal.write(name, data)

    def _mark(self, step: Step) -> None:
        mark, style = _MARKS.get(step.status, _MARKS[StepStatus.UNKNOWN])
        if not self.quiet or not _is_plain_exit(step.outcome):
            took = f"  {duration_text(step.duration_ms)}" if step.duration_ms is not None else ""
            self._note(mark, style, f"{outcome_text(step.outcome)}{took}")

    def _note(self, mark: str, style: str, text: str) -> None:
        self.terminal.note(Text.assemble((mark, style), " ", foreign(text)))


def _is_plain_exit(outcome: Outcome | None) -> bool:
    return outcome is not None and outcome.kind == "exited"


def _what_was_blocked(event: RunEvent) -> str:
    reason, detail = event.data.get("reason", ""), event.data.get("detail")
    destination = detail.get("destination") if isinstance(detail, dict) else None
    return f"{destination}: {reason}" if destination else str(reason)
