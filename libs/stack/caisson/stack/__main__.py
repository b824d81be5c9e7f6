"""`python -m caisson.stack` is `caisson up`."""

import typer

from caisson.stack.command import up

if __name__ == "__main__":
    typer.run(up)
