"""`python -m caisson.memory` serves; `--reembed` lets a newly configured embedder take over the index."""

import argparse
import sys

import uvloop

from caisson.common.errors import CaissonError
from caisson.common.settings import load
from caisson.common.telemetry import configure
from caisson.memory.app import serve
from caisson.memory.settings import MemorySettings


def main() -> int:
    """Read settings and serve; a typed error is one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="caisson.memory", description="What agents remember.")
    parser.add_argument(
        "--reembed", action="store_true", help="embed every memory again, with the embedder that is configured now"
    )
    arguments = parser.parse_args()
    try:
        settings = load(MemorySettings)
        configure("memory", level=settings.log_level, otlp_endpoint=settings.otlp_endpoint)
        uvloop.run(serve(settings, reembed=arguments.reembed))
    except CaissonError as error:
        sys.stderr.write(f"caisson.memory: {error.detail}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
