"""`caisson sessions`, `tenants`, `credentials`, `keys` and `security-events`."""

import json
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from caisson.client.commands.desk import Desk
from caisson.client.commands.terminal import foreign
from caisson.client.commands.wording import time_text
from caisson.client.models import Answer, ApiKey
from caisson.client.requests import TenantSettings


async def create_session(desk: Desk) -> int:
    """Start a session and print its id."""
    session = await desk.client.create_session()
    if desk.as_json:
        desk.document(session)
    else:
        desk.terminal.out.print(foreign(session.id))
    return 0


async def list_sessions(desk: Desk, *, limit: int) -> int:
    """List sessions, newest first."""
    await desk.listing(
        desk.client.list_sessions(limit=limit),
        ("SESSION", "TENANT", "USER", "CREATED"),
        lambda item: (
            item.id,
            foreign(item.tenant_id or ""),
            foreign(item.user_id or ""),
            time_text(item.created_at),
        ),
    )
    return 0


async def show_session(desk: Desk, session_id: str) -> int:
    """Show a session."""
    show_answer(desk, await desk.client.get_session(session_id))
    return 0


async def delete_session(desk: Desk, session_id: str) -> int:
    """Delete a session, and say whether something is left to do."""
    left = await desk.client.delete_session(session_id)
    told = f"{session_id}: deleted" if left is None else f"{session_id}: being deleted"
    _confirm(desk, told, {"session_id": session_id, "deleted": left is None})
    return 0


async def show_tenant(desk: Desk, tenant_id: str) -> int:
    """Show a tenant's settings."""
    show_answer(desk, await desk.client.get_tenant(tenant_id))
    return 0


async def set_tenant(desk: Desk, tenant_id: str, settings: TenantSettings) -> int:
    """Change a tenant's settings."""
    show_answer(desk, await desk.client.put_tenant(tenant_id, settings))
    return 0


async def set_credential(desk: Desk, tenant_id: str, upstream: str, *, kind: str, value: str) -> int:
    """Store a tenant's credential for an upstream."""
    bearer, header = (value, None) if kind == "bearer" else (None, value)
    await desk.client.put_credential(tenant_id, upstream, bearer=bearer, header=header)
    told = {"tenant_id": tenant_id, "upstream": upstream, "kind": kind}
    _confirm(desk, f"{tenant_id}: credential for {upstream} stored", told)
    return 0


async def delete_credential(desk: Desk, tenant_id: str, upstream: str) -> int:
    """Remove a tenant's credential for an upstream."""
    await desk.client.delete_credential(tenant_id, upstream)
    told = {"tenant_id": tenant_id, "upstream": upstream, "deleted": True}
    _confirm(desk, f"{tenant_id}: credential for {upstream} removed", told)
    return 0


async def create_key(desk: Desk, name: str, *, tenant_id: str | None) -> int:
    """Make a key and show it this once."""
    key = await desk.client.create_key(name, tenant_id=tenant_id)
    secret = key.key.get_secret_value() if key.key else ""
    if desk.as_json:
        desk.document(key.model_dump(mode="json") | {"key": secret})
        return 0
    desk.terminal.note(Text.assemble("key ", (key.id, "bold"), ", shown only now:"))
    desk.terminal.write("stdout", f"{secret}\n".encode())
    return 0


async def list_keys(desk: Desk, *, prefix: str | None, limit: int) -> int:
    """List keys, newest first."""

    def row(key: ApiKey) -> tuple[Any, ...]:
        state = Text("revoked", "red") if key.revoked_at else Text("valid", "green")
        bound_to = foreign(key.tenant_id) if key.tenant_id else Text("platform", "magenta")
        return key.id, foreign(key.name or ""), bound_to, state, time_text(key.created_at)

    keys = desk.client.list_keys(prefix=prefix, limit=limit)
    await desk.listing(keys, ("KEY", "NAME", "FOR", "STATE", "CREATED"), row)
    return 0


async def revoke_key(desk: Desk, key_id: str) -> int:
    """Revoke a key at once; of a whole key, only its id is sent."""
    key_id = "_".join(key_id.split("_")[:2])
    await desk.client.delete_key(key_id)
    _confirm(desk, f"key {key_id} revoked", {"revoked": key_id})
    return 0


async def security_events(desk: Desk, *, since: datetime | None, limit: int) -> int:
    """List what was blocked, newest first."""
    await desk.listing(
        desk.client.security_events(since=since, limit=limit),
        ("TIME", "KIND", "TENANT", "RUN", "GUARD", "REASON", "WHAT"),
        lambda event: (
            time_text(event.occurred_at),
            Text(event.kind, "red"),
            foreign(event.tenant_id or ""),
            event.run_id or "",
            event.guard or "",
            foreign(event.reason or ""),
            foreign(event.snippet or ", ".join(f"{name} {value}" for name, value in event.detail.items()), "dim"),
        ),
    )
    return 0


def show_answer(desk: Desk, answer: Answer) -> None:
    """Write an answer field by field, or as one document."""
    if desk.as_json:
        desk.document(answer)
        return
    table = Table("", "", box=None, show_header=False, pad_edge=False)
    for name, value in answer.model_dump(mode="json").items():
        inner = value if isinstance(value, dict) and value else {"": value}
        for key, item in inner.items():
            shown = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            table.add_row(Text(f"{name}.{key}" if key else name, "cyan"), foreign(shown))
    desk.terminal.out.print(table)


def _confirm(desk: Desk, sentence: str, document: dict[str, Any]) -> None:
    if desk.as_json:
        desk.document(document)
    else:
        desk.terminal.out.print(foreign(sentence))
