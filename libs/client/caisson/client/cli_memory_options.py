"""Options that several commands of `caisson memory` share."""

from datetime import datetime
from typing import Annotated

import typer

MemoryId = Annotated[str, typer.Argument(metavar="MEMORY", help="Id of a memory, or the product's own id of it.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", metavar="SCOPE", help="Grant a scope (platform keys only); may be repeated."),
]
AsOf = Annotated[
    datetime | None, typer.Option("--as-of", metavar="TIME", help="What was in force then, by this machine's clock.")
]
Layers = Annotated[
    list[str] | None,
    typer.Option("--layer", metavar="LAYER", help="session, episodic, semantic or procedural; may be repeated."),
]
Layer = Annotated[
    str | None, typer.Option("--layer", metavar="LAYER", help="session, episodic, semantic or procedural.")
]
Importance = Annotated[float | None, typer.Option("--importance", min=0, max=1, help="From 0 to 1.", metavar="X")]
Expires = Annotated[
    datetime | None, typer.Option("--expires", metavar="TIME", help="When it ends, by this machine's clock.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="May be repeated.")]
Metadata = Annotated[
    str | None, typer.Option("--metadata", metavar="JSON", help="The product's own data, a JSON object.")
]
