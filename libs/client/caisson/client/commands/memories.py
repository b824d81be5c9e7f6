"""`caisson memory add`, `search`, `list`, `show`, `history`, `edit` and `forget`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from caisson.client.client import Client
from caisson.client.commands.administration import show_answer
from caisson.client.commands.desk import Desk
from caisson.client.commands.terminal import foreign
from caisson.client.commands.wording import time_text
from caisson.client.memory_models import Diagnostics, Memory, Receipt, Remembered

REJECTED = 1
_STYLES = {"created": "green", "superseded": "green", "duplicate_of": "yellow", "rejected": "red"}
_COLUMNS = ("MEMORY", "LAYER", "STATUS", "SINCE", "TEXT")


async def add(desk: Desk, text: str, fields: Mapping[str, Any], *, scopes: Sequence[str]) -> int:
    """Remember one thing; a rejected one is no success."""
    told = await _client(desk, scopes).remember(text, **fields)
    if desk.as_json:
        desk.document(told)
    else:
        desk.terminal.out.print(_remembered(told))
    return REJECTED if told.status == "rejected" else 0


async def search(desk: Desk, query: str, wishes: Mapping[str, Any], *, scopes: Sequence[str]) -> int:
    """Recall memories."""
    recalled = await _client(desk, scopes).recall(query, **wishes)
    if desk.as_json:
        desk.document(recalled)
        return 0
    for hit in recalled.hits:
        head = Text.assemble((f"{hit.score:.2f} ", "cyan"), (f"{hit.memory.id} ", "dim"))
        desk.terminal.out.print(Text.assemble(head, foreign(hit.memory.text)))
    desk.terminal.note(_happened(recalled.diagnostics, recalled.retrieval_id))
    return 0


async def context(desk: Desk, query: str, wishes: Mapping[str, Any], *, scopes: Sequence[str]) -> int:
    """Recall memories as text for a model."""
    found = await _client(desk, scopes).recall_context(query, **wishes)
    if desk.as_json:
        desk.document(found)
        return 0
    if found.text:
        desk.terminal.write("stdout", f"{found.text}\n".encode(errors="replace"))
    desk.terminal.note(_happened(found.diagnostics, found.retrieval_id))
    return 0


async def listing(desk: Desk, wishes: Mapping[str, Any], *, scopes: Sequence[str]) -> int:
    """List memories, newest first."""
    await desk.listing(_client(desk, scopes).list_memories(**wishes), _COLUMNS, row)
    return 0


async def show(desk: Desk, memory_id: str, *, as_of: datetime | None, scopes: Sequence[str]) -> int:
    """Show a memory."""
    show_answer(desk, await _client(desk, scopes).get_memory(memory_id, as_of=as_of))
    return 0


async def history(desk: Desk, memory_id: str, *, as_of: datetime | None, scopes: Sequence[str]) -> int:
    """List the versions of a memory."""
    entries = await _client(desk, scopes).memory_history(memory_id, as_of=as_of)
    if desk.as_json:
        for entry in entries:
            desk.document(entry)
        return 0
    for entry in entries:
        until = time_text(entry.valid_to) or "now"
        told = f"{time_text(entry.at)}  {entry.change} {entry.memory_id} v{entry.version}"
        desk.terminal.out.print(foreign(f"{told}  in force {time_text(entry.valid_from)} – {until}", "dim"))
        desk.terminal.out.print(foreign(f"    {entry.text or '(forgotten)'}"))
    return 0


async def edit(desk: Desk, memory_id: str, changes: Mapping[str, Any], *, scopes: Sequence[str]) -> int:
    """Correct a memory."""
    show_answer(desk, await _client(desk, scopes).change_memory(memory_id, **changes))
    return 0


async def forget(desk: Desk, memory_id: str, *, scopes: Sequence[str]) -> int:
    """Forget a memory."""
    tell_receipt(desk, await _client(desk, scopes).forget(memory_id))
    return 0


def row(memory: Memory) -> tuple[Any, ...]:
    """Return a memory as a row of a table."""
    return (
        memory.id,
        memory.layer,
        foreign(memory.status, "dim" if memory.status != "active" else ""),
        time_text(memory.valid_from),
        foreign(memory.text),
    )


def tell_receipt(desk: Desk, receipt: Receipt) -> None:
    """Write what a deletion touched."""
    if desk.as_json:
        desk.document(receipt)
        return
    gone = (
        f"{receipt.count} forgotten, {len(receipt.rebuilt)} rebuilt without them, {receipt.vectors} vectors removed"
    )
    state = (
        "complete" if receipt.complete else f"not complete yet; ask again with: caisson memory receipt {receipt.id}"
    )
    desk.terminal.out.print(foreign(f"receipt {receipt.id}: {gone}; {state}"))


def _client(desk: Desk, scopes: Sequence[str]) -> Client:
    return desk.client.with_scopes(*scopes) if scopes else desk.client


def _remembered(told: Remembered) -> Text:
    parts = [Text(told.status.replace("_", " "), _STYLES.get(told.status, "")), Text(told.id or "", "bold")]
    if told.supersedes:
        parts.append(foreign(f"in place of {', '.join(told.supersedes)}"))
    if told.similar_to:
        parts.append(foreign(f"similar to {told.similar_to}", "dim"))
    if told.reason:
        parts.append(foreign(told.reason))
    return Text(" ").join(part for part in parts if part.plain)


def _happened(told: Diagnostics, retrieval_id: str) -> Text:
    line = f"{told.backend}: {told.found} found, {told.gated} below the gate, {told.tokens} tokens"
    if told.dropped_for_budget:
        line += f", {told.dropped_for_budget} over the budget"
    if told.reason:
        line += f"; {told.reason}"
    whole = foreign(f"{line}; retrieval {retrieval_id}", "dim")
    return (
        whole
        if not told.degraded
        else Text.assemble(foreign(f"degraded: {'; '.join(told.degraded)}  ", "yellow"), whole)
    )
