"""What a deletion's receipt says. Invariant: ids and counts, never a text; told are only ids of what the caller saw.

A receipt is kept in the transaction that deletes, so that no deletion is without one, whatever happens next.
"""

from dataclasses import replace
from typing import Any

from caisson.memory.domain.jobs import Job
from caisson.memory.domain.writing import Forgotten

_UNSEEN = "unseen"
"""Beside a kept receipt: what was touched of others', which completes it and is not told."""


def told(forgotten: Forgotten, *, complete: bool) -> dict[str, Any]:
    """Return what the caller is told; `complete` once no copy is left."""
    return {
        "deleted": [memory_id for memory_id in forgotten.deleted if memory_id in forgotten.seen],
        "rebuilt": [memory_id for memory_id in forgotten.rebuilt if memory_id in forgotten.seen],
        "vectors": forgotten.chunks,
        "cache_epochs": forgotten.epochs,
        "tombstones": forgotten.tombstones,
        "complete": complete,
        "resume": None,
        "count": len(forgotten.deleted),
    }


def kept(forgotten: Forgotten) -> dict[str, Any]:
    """Return what is kept of a deletion that the index has not followed yet."""
    touched = (*forgotten.deleted, *forgotten.rebuilt)
    return told(forgotten, complete=False) | {_UNSEEN: [one for one in touched if one not in forgotten.seen]}


def erased(job: Job, forgotten: Forgotten) -> Job:
    """Return an erasure after another page: its receipt counts all pages and names nothing, its state does."""
    page = told(forgotten, complete=False)
    counted = {name: page[name] + job.receipt.get(name, 0) for name in ("vectors", "tombstones", "count")}
    receipt = page | counted | {"deleted": [], "rebuilt": [], "resume": job.job_id}
    return replace(job, receipt=receipt, state=job.state | {"left": [*job.state["left"], *forgotten.deleted]})


def read(receipt: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what is told of a kept receipt, and the ids of all that was touched."""
    shown = {name: value for name, value in receipt.items() if name != _UNSEEN}
    return shown, [*shown["deleted"], *shown["rebuilt"], *receipt.get(_UNSEEN, [])]
