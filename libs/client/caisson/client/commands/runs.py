"""`caisson exec`, `run`, `runs`, `events` and `cancel`."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from rich.text import Text

from caisson.client import exit_codes
from caisson.client.commands.desk import Desk
from caisson.client.commands.interrupts import interruptible
from caisson.client.commands.live import Narration
from caisson.client.commands.terminal import foreign
from caisson.client.commands.wording import (
    duration_text,
    run_duration_ms,
    run_error_text,
    status_text,
    time_text,
)
from caisson.client.errors import CaissonError
from caisson.client.models import Run, RunEvent

_QUIET_S = 1.0


async def execute(desk: Desk, body: Mapping[str, Any]) -> int:
    """Run one command and pass on its output."""
    run = await _carry_out(desk, body, quiet=True, titles=[])
    if desk.as_json and run.steps:
        desk.document({"run_id": run.id, **run.steps[0].model_dump(mode="json")})
    elif run.error and not (run.steps and run.steps[0].outcome):
        desk.terminal.note(foreign(f"run {run.status}: {run_error_text(run)}"))
    return exit_codes.of_run(run)


async def run_file(desk: Desk, body: Mapping[str, Any], *, detach: bool) -> int:
    """Start the run that a file describes and tell it until its end."""
    if detach:
        run = await desk.client.submit(body)
        if desk.as_json:
            desk.document(run)
        else:
            desk.terminal.out.print(run.id)
        return 0
    run = await _carry_out(desk, body, quiet=False, titles=_titles(body))
    if desk.as_json:
        desk.document(run)
    else:
        took = duration_text(run_duration_ms(run))
        why = "" if run.succeeded or not run.error else f": {run_error_text(run)}"
        desk.terminal.note(Text.assemble("run ", status_text(run.status), foreign(why), (f"  {took}", "dim")))
    return exit_codes.of_run(run)


async def _carry_out(desk: Desk, body: Mapping[str, Any], *, quiet: bool, titles: list[str]) -> Run:
    """Start a run, follow it, and let Ctrl-C cancel it."""
    interrupted = asyncio.Event()
    with interruptible(interrupted.set):
        run = await desk.client.submit(body)
        canceller = asyncio.create_task(_cancel_when(interrupted, desk, run.id))
        try:
            if desk.as_json:
                return await desk.client.wait(run.id)
            if not quiet:
                desk.terminal.note(Text.assemble("run ", (run.id, "bold")))
            narration = Narration(desk.client, desk.terminal, run, titles=titles, quiet=quiet)
            return await narration.follow()
        except BrokenPipeError:
            interrupted.set()
            await canceller
            raise
        except (CaissonError, asyncio.CancelledError):
            desk.terminal.note(f"left, and the run may go on; see: caisson events {run.id}")
            raise
        finally:
            canceller.cancel()


async def _cancel_when(interrupted: asyncio.Event, desk: Desk, run_id: str) -> None:
    await interrupted.wait()
    desk.terminal.note(f"cancelling {run_id} (Ctrl-C again leaves it)")
    try:
        await desk.client.cancel(run_id)
    except CaissonError as error:
        desk.terminal.note(foreign(f"cannot cancel {run_id}: {error}"))


def _titles(body: Mapping[str, Any]) -> list[str]:
    steps = body.get("steps")
    return [_title(step) for step in steps] if isinstance(steps, list) else []


def _title(step: object) -> str:
    match step:
        case {"bash": {"command": str(command)}}:
            return command
        case {"tool": {"name": str(name)}}:
            return f"tool {name}"
    return "?"


async def list_runs(desk: Desk, *, status: str | None, session_id: str | None, limit: int) -> int:
    """List runs, newest first."""
    runs = desk.client.list_runs(status=status, session_id=session_id, limit=limit)
    columns = ("RUN", "STATUS", "STEPS", "CREATED", "TOOK", "SESSION", "WHY")
    await desk.listing(
        runs,
        columns,
        lambda run: (
            run.id,
            status_text(run.status),
            f"{sum(step.finished for step in run.steps)}/{len(run.steps)}",
            time_text(run.created_at),
            duration_text(run_duration_ms(run)),
            foreign(run.session_id or ""),
            foreign(run_error_text(run)),
        ),
    )
    return 0


async def events(desk: Desk, run_id: str, *, after: int | None, follow: bool) -> int:
    """Write a run's events; without `follow`, those that are there."""
    async with aclosing(desk.client.events(run_id, after=after)) as stream:
        try:
            while True:
                async with asyncio.timeout(None if follow else _QUIET_S):
                    event = await anext(stream, None)
                if event is None:
                    return 0
                _write_event(desk, event)
        except TimeoutError:
            return 0


def _write_event(desk: Desk, event: RunEvent) -> None:
    if desk.as_json:
        desk.document(event)
        return
    number = "live" if event.seq is None else str(event.seq)
    data = json.dumps(event.data, ensure_ascii=False)
    desk.terminal.out.print(Text.assemble((f"{number:>5} ", "dim"), (f"{event.type:<14} ", "bold"), foreign(data)))


async def cancel(desk: Desk, run_id: str) -> int:
    """Cancel a run."""
    await desk.client.cancel(run_id)
    run = await desk.client.get_run(run_id)
    if desk.as_json:
        desk.document(run)
    else:
        told = status_text(run.status) if run.finished else Text("cancelling", "yellow")
        desk.terminal.out.print(Text.assemble(run.id, " ", told))
    return 0
