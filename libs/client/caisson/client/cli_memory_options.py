"""Options that several commands of `caisson memory` share."""

from datetime import datetime
from typing import Annotated

import typer

from caisson.client.cli_options import read_time

MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="Id of a memory, or the product's own id of it.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="SCOPE", help="Grant a scope (platform keys only); may be repeated."),
]
AsOf = Annotated[
    datetime | None,
    typer.Option(
        "--as-of", parser=read_time, metavar="TIME", help="What was in force then; without offset, by this clock."
    ),
]
Layers = Annotated[
    list[str] | None,
    typer.Option("--layer", metavar="LAYER", help="session, episodic, semantic or procedural; may be repeated."),
]
Layer = Annotated[
    str | None, typer.Option("--layer", metavar="LAYER", help="session, episodic, semantic or procedural.")
]
Importance = Annotated[float | None, typer.Option("--importance", min=0, max=1, help="From 0 to 1.", metavar="X")]
Confidence = Annotated[
    float | None, typer.Option("--confidence", min=0, max=1, help="How sure it is, from 0 to 1.", metavar="X")
]
ValidTo = Annotated[
    datetime | None, typer.Option("--valid-to", parser=read_time, metavar="TIME", help="Until when it is true.")
]
Expires = Annotated[
    datetime | None,
    typer.Option(
        "--expires", parser=read_time, metavar="TIME", help="Until when it is kept; without offset, by this clock."
    ),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")]
Metadata = Annotated[
    str | None, typer.Option("--metadata", metavar="JSON", help="The product's own data, a JSON object.")
]
