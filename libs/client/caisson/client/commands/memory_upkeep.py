"""`caisson memory erase-user`, `receipt`, `export`, `usage`, `consolidate`, `distil` and `reconcile`."""

import json
from collections.abc import Sequence

from caisson.client.commands.administration import show_answer
from caisson.client.commands.desk import Desk
from caisson.client.commands.memories import row, tell_receipt
from caisson.client.commands.terminal import foreign

_COLUMNS = ("MEMORY", "LAYER", "STATUS", "SINCE", "TEXT")
UNFINISHED = 75


async def erase_user(desk: Desk, user_id: str) -> int:
    """Erase everything of a user."""
    tell_receipt(desk, await desk.client.erase_user(user_id))
    return 0


async def receipt(desk: Desk, receipt_id: str) -> int:
    """Show a receipt as it stands now."""
    told = await desk.client.get_receipt(receipt_id)
    tell_receipt(desk, told)
    return 0 if told.complete else UNFINISHED


async def export(desk: Desk, user_id: str) -> int:
    """Write everything of a user."""
    await desk.listing(desk.client.export_user(user_id), _COLUMNS, row)
    return 0


async def usage(desk: Desk) -> int:
    """Show what is held."""
    show_answer(desk, await desk.client.memory_usage())
    return 0


async def consolidate(desk: Desk, *, dry_run: bool, due: bool) -> int:
    """Make one memory of several episodes."""
    plan = await desk.client.consolidate(dry_run=dry_run, due=due)
    if desk.as_json:
        desk.document(plan)
        return 0
    for group in plan.groups:
        desk.terminal.out.print(foreign(json.dumps(group, ensure_ascii=False, indent=2)))
    done = f"{len(plan.created)} memories made" if plan.applied else "nothing was changed"
    desk.terminal.note(foreign(f"{len(plan.groups)} groups; {done}", "dim"))
    return 0


async def distil(desk: Desk, candidates: Sequence[str], *, target: int | None, resume: str | None) -> int:
    """Distil candidates; an unfinished job says how to go on."""
    told = await desk.client.distil(candidates, target=target, resume=resume)
    if desk.as_json:
        desk.document(told)
        return 0 if told.complete else UNFINISHED
    for text in told.selected:
        desk.terminal.out.print(foreign(text))
    for stage in told.stages:
        desk.terminal.note(foreign(json.dumps(stage, ensure_ascii=False), "dim"))
    if not told.complete:
        desk.terminal.note(foreign(f"not finished: go on with --resume {told.job_id}", "yellow"))
    return 0 if told.complete else UNFINISHED


async def reconcile(desk: Desk) -> int:
    """Compare store and index."""
    show_answer(desk, await desk.client.reconcile_memories())
    return 0
