"""The frame of every command that calls the gateway: a client, a terminal, and errors as exit codes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import typer
from rich.table import Table

from caisson.client import exit_codes
from caisson.client.calls import Identity
from caisson.client.client import Client
from caisson.client.commands.terminal import Terminal
from caisson.client.commands.wording import error_block, error_document
from caisson.client.configuration import DEFAULT_TENANT, DEFAULT_USER, Connection
from caisson.client.errors import CaissonError
from caisson.client.models import Answer
from caisson.client.retrying import Retries

_RETRIES = Retries(give_up_after_s=3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a command works with."""

    client: Client
    terminal: Terminal
    as_json: bool
    api_key: str = field(repr=False)

    def document(self, value: Answer | dict[str, Any]) -> None:
        """Write one JSON document on one line."""
        plain = value.model_dump(mode="json") if isinstance(value, Answer) else value
        self.terminal.write("stdout", json.dumps(plain, ensure_ascii=False).encode(errors="replace") + b"\n")

    async def listing(
        self,
        items: AsyncIterator[Any],
        columns: Sequence[str],
        row: Callable[[Any], Iterable[Any]],
    ) -> None:
        """Write items as JSON lines, or as a table."""
        if self.as_json:
            async for item in items:
                self.document(item)
            return
        table = Table(box=None, header_style="bold", pad_edge=False)
        for place, column in enumerate(columns):
            table.add_column(column, no_wrap=place == 0, overflow="fold")
        async for item in items:
            table.add_row(*row(item))
        self.terminal.out.print(table if table.row_count else "none")


def perform(connection: Connection, job: Callable[[Desk], Awaitable[int]], *, as_json: bool) -> None:
    """Run a command's job and end with its exit code."""
    terminal = Terminal()
    try:
        code = asyncio.run(_perform(connection, job, terminal, as_json=as_json))
    except CaissonError as error:
        if as_json:
            terminal.write("stderr", json.dumps(error_document(error)).encode() + b"\n")
        else:
            terminal.note(error_block(error))
        raise typer.Exit(exit_codes.API_ERROR) from None
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise typer.Exit(exit_codes.CANCELLED) from None
    raise typer.Exit(code)


async def _perform(
    connection: Connection, job: Callable[[Desk], Awaitable[int]], terminal: Terminal, *, as_json: bool
) -> int:
    try:
        client = Client(
            connection.url,
            connection.api_key,
            tenant=connection.tenant,
            user=connection.user,
            fallback=Identity(tenant=DEFAULT_TENANT, user=DEFAULT_USER),
            retries=_RETRIES,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    async with client:
        return await job(Desk(client=client, terminal=terminal, as_json=as_json, api_key=connection.api_key))
