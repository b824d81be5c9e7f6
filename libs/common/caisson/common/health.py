"""`/healthz` (the process turns), `/readyz` (it makes progress, or says why not) and `/metrics`."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from caisson.common.errors import CaissonError, Unavailable

Check = Callable[[], Awaitable[None]]
CHECK_TIMEOUT_S = 3.0


class Health:
    """The named checks of one service: each returns when all is well and raises a typed error otherwise."""

    def __init__(self, *, check_timeout_s: float = CHECK_TIMEOUT_S) -> None:
        self._checks: dict[str, Check] = {}
        self._check_timeout_s = check_timeout_s

    def add(self, name: str, check: Check) -> None:
        """Register a readiness check."""
        self._checks[name] = check

    async def failures(self) -> dict[str, str]:
        """Run every check and return the reasons of those that fail."""
        names = list(self._checks)
        reasons = await asyncio.gather(*(self._reason(name) for name in names))
        return {name: reason for name, reason in zip(names, reasons, strict=True) if reason}

    async def _reason(self, name: str) -> str | None:
        try:
            await asyncio.wait_for(self._checks[name](), self._check_timeout_s)
        except CaissonError as error:
            return error.detail
        except TimeoutError:
            return f"no answer in {self._check_timeout_s} s"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    def routes(self) -> list[Route]:
        """Return the three routes, for a service's own application or for the admin port."""
        return [
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
        ]

    def application(self) -> Starlette:
        """Return an application that serves nothing else."""
        return Starlette(routes=self.routes())

    async def _healthz(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _readyz(self, _: Request) -> Response:
        failing = await self.failures()
        if failing:
            return JSONResponse({"status": "unavailable", "failing": failing}, status_code=503)
        return JSONResponse({"status": "ok", "checks": sorted(self._checks)})

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


class Progress:
    """A loop's proof of life: it must `tick` at least every `limit_s` seconds."""

    def __init__(self, name: str, *, limit_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._name = name
        self._limit_s = limit_s
        self._clock = clock
        self._last: float | None = None

    def tick(self) -> None:
        """Say that the loop has come round."""
        self._last = self._clock()

    async def check(self) -> None:
        """Raise Unavailable when the loop has not come round in time, or never started."""
        if self._last is None:
            raise Unavailable(f"{self._name} has not started")
        silent_s = self._clock() - self._last
        if silent_s > self._limit_s:
            raise Unavailable(f"{self._name} has been silent for {silent_s:.1f} s (limit {self._limit_s} s)")
