"""`python -m caisson.runner`: read the settings, serve."""

import uvloop

from caisson.common import settings, telemetry
from caisson.runner.app import serve
from caisson.runner.settings import RunnerSettings


def main() -> None:
    """Serve until told to end."""
    told = settings.load(RunnerSettings)
    telemetry.configure("runner", level=told.log_level, otlp_endpoint=told.otlp_endpoint)
    uvloop.run(serve(told))


if __name__ == "__main__":
    main()
