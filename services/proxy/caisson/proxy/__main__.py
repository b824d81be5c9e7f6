"""`python -m caisson.proxy`: read the settings, serve."""

import gc
import resource
import sys

import uvloop

from caisson.common.errors import CaissonError
from caisson.common.settings import load
from caisson.common.telemetry import configure
from caisson.proxy.app import serve
from caisson.proxy.settings import ProxySettings

_YOUNG_OBJECTS = 10_000


def main() -> int:
    """Serve until told to end; a typed error is one line and exit code 1."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # two connections for each request under way
    gc.set_threshold(_YOUNG_OBJECTS)  # requests leave no cycles behind: looking for them every 700 objects is waste
    try:
        settings = load(ProxySettings)
        configure("proxy", level=settings.log_level, otlp_endpoint=settings.otlp_endpoint)
        uvloop.run(serve(settings))
    except CaissonError as error:
        sys.stderr.write(f"caisson.proxy: {error.detail}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
