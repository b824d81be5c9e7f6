"""Declares the rest of `caisson memory`: whole users, receipts, quotas, and what keeps a memory in order."""

from typing import Annotated

import typer

from caisson.client.cli_options import AsJson, Tenant, User, connect

UserId = Annotated[str, typer.Argument(metavar="USER", help="Id of a user of the tenant.")]


def declare(memory: typer.Typer) -> None:
    """Add the commands."""
    memory.command("erase-user")(erase_user)
    memory.command()(receipt)
    memory.command()(export)
    memory.command()(usage)
    memory.command()(consolidate)
    memory.command()(distil)
    memory.command()(reconcile)


def erase_user(
    context: typer.Context,
    user_id: UserId,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Erase everything remembered about a user; prints the receipt."""
    if not yes:
        typer.confirm(f"Erase everything remembered about {user_id}?", abort=True, err=True)
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep

    desk.perform(connection, lambda at: memory_upkeep.erase_user(at, user_id), as_json=as_json)


def receipt(
    context: typer.Context,
    receipt_id: Annotated[
        str,
        typer.Argument(metavar="RECEIPT", help="Id of a receipt of forget or erase-user, or of a forgotten memory."),
    ],
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Show a deletion's receipt as it stands now; exits with 75 while it is not complete."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep

    desk.perform(connection, lambda at: memory_upkeep.receipt(at, receipt_id), as_json=as_json)


def export(
    context: typer.Context, user_id: UserId, tenant: Tenant = None, user: User = None, as_json: AsJson = False
) -> None:
    """Write everything remembered about a user, superseded and cold too; --json for JSON lines."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep

    desk.perform(connection, lambda at: memory_upkeep.export(at, user_id), as_json=as_json)


def usage(context: typer.Context, tenant: Tenant = None, user: User = None, as_json: AsJson = False) -> None:
    """Show rows and bytes of the user and of the tenant, against their quotas."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep

    desk.perform(connection, memory_upkeep.usage, as_json=as_json)


def consolidate(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan.")] = False,
    due: Annotated[bool, typer.Option("--due", help="Take what the service would take by itself now.")] = False,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Make one memory of several episodes; the episodes go cold, never away."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep

    desk.perform(connection, lambda at: memory_upkeep.consolidate(at, dry_run=dry_run, due=due), as_json=as_json)


def distil(
    context: typer.Context,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="Candidates, one a line; - reads stdin.")] = None,
    target: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many to keep at most.  [50]")] = None,
    resume: Annotated[str | None, typer.Option(metavar="JOB", help="Go on with an unfinished job.")] = None,
    tenant: Tenant = None,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """Distil many candidates to a few, and tell what each stage did; exits with 75 while it is not finished."""
    if (file is None) == (resume is None):
        raise typer.BadParameter("give one of FILE and --resume")
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep
    from caisson.client.commands.memory_files import read_lines

    candidates = read_lines(file) if file else []
    desk.perform(
        connection, lambda at: memory_upkeep.distil(at, candidates, target=target, resume=resume), as_json=as_json
    )


def reconcile(context: typer.Context, tenant: Tenant = None, user: User = None, as_json: AsJson = False) -> None:
    """Compare store and index for the tenant, and mend the index."""
    connection = connect(context, tenant, user)
    from caisson.client.commands import desk, memory_upkeep

    desk.perform(connection, memory_upkeep.reconcile, as_json=as_json)
