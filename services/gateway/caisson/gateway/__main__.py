"""`python -m caisson.gateway` serves; `python -m caisson.gateway keys create --platform NAME` makes a first key."""

import argparse
import sys

import uvloop

from caisson.common.errors import CaissonError
from caisson.common.settings import load
from caisson.common.telemetry import configure
from caisson.gateway.app import serve
from caisson.gateway.keys import create_platform_key
from caisson.gateway.settings import GatewaySettings


def main() -> int:
    """Read settings and arguments, serve or make a key; a typed error is one line and exit code 1."""
    parser = argparse.ArgumentParser(prog="caisson.gateway", description="The gateway: HTTP API and ledger.")
    commands = parser.add_subparsers(dest="noun")
    verbs = commands.add_parser("keys", help="API keys").add_subparsers(dest="verb", required=True)
    create = verbs.add_parser("create", help="make a platform key and print it once")
    create.add_argument("--platform", metavar="NAME", required=True, help="what the key is called")
    arguments = parser.parse_args()
    try:
        settings = load(GatewaySettings)
        configure("gateway", level=settings.log_level, otlp_endpoint=settings.otlp_endpoint)
        if arguments.noun == "keys":
            token = uvloop.run(create_platform_key(settings, arguments.platform))
            sys.stdout.write(f"{token}\n")
        else:
            uvloop.run(serve(settings))
    except CaissonError as error:
        sys.stderr.write(f"caisson.gateway: {error.detail}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
