"""Calls about runs: start, look, wait, follow, cancel."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from caisson.client.calls import READ_TIMEOUT_S, run_path
from caisson.client.errors import WaitTimedOut
from caisson.client.following import Follower
from caisson.client.models import ExecResult, Run, RunEvent
from caisson.client.pages import paginate, parse
from caisson.client.requests import Bash, ExecRequest, Limits, RunRequest, StepSpec, Upstream, build
from caisson.client.transport import Transport

LONG_POLL_S = 30.0
_MAX_WAIT_S = 60.0
_MARGIN_S = 15.0

Upstreams = Mapping[str, Upstream | str]


class RunCalls:
    """What a caller does with runs."""

    _transport: Transport

    async def create_run(
        self,
        *,
        steps: Sequence[StepSpec | str] = (),
        commands: Sequence[str] = (),
        session_id: str | None = None,
        env: Mapping[str, str] | None = None,
        datasets: Sequence[str] | None = None,
        upstreams: Upstreams | None = None,
        limits: Limits | None = None,
        on_failure: Literal["stop", "continue"] | None = None,
        on_lost: Literal["retry", "stop"] | None = None,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Run:
        """Start a run of `steps`, or of `commands` in bash (a string among the steps is a command, too).

        A string among the upstreams is a bearer token. Once this returns, the run is never lost; a repeated call with
        the same `idempotency_key` returns the same run.

        Raises:
            InvalidInput: naming fields and limits.
        """
        request = build(
            RunRequest,
            {
                "steps": [_step(item) for item in (*steps, *commands)],
                "session_id": session_id,
                "env": env,
                "datasets": datasets,
                "upstreams": _upstreams(upstreams),
                "limits": limits,
                "on_failure": on_failure,
                "on_lost": on_lost,
                "metadata": metadata,
            },
        )
        return await self.submit(request.body(), idempotency_key=idempotency_key)

    async def submit(self, body: Mapping[str, Any], *, idempotency_key: str | None = None) -> Run:
        """Start a run from a body of `POST /v1/runs` as it is."""
        return parse(Run, await self._transport.post("/v1/runs", body, key=idempotency_key))

    async def exec(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        session_id: str | None = None,
        env: Mapping[str, str] | None = None,
        datasets: Sequence[str] | None = None,
        upstreams: Upstreams | None = None,
        limits: Limits | None = None,
        idempotency_key: str | None = None,
    ) -> ExecResult:
        """Run one bash command and return its finished step, however it ended."""
        request = build(
            ExecRequest,
            {
                "command": command,
                "timeout_s": timeout_s,
                "session_id": session_id,
                "env": env,
                "datasets": datasets,
                "upstreams": _upstreams(upstreams),
                "limits": limits,
            },
        )
        answer = await self._transport.post(
            "/v1/exec",
            request.body(),
            key=idempotency_key,
            read_timeout_s=max(READ_TIMEOUT_S, timeout_s or 0.0) + _MARGIN_S,
        )
        return parse(ExecResult, answer)

    async def get_run(self, run_id: str, *, wait_s: float | None = None) -> Run:
        """Return a run; with `wait_s` (at most 60) hold until it is finished or the time is over."""
        params = None if wait_s is None else {"wait_s": f"{wait_s:g}"}
        read_timeout_s = READ_TIMEOUT_S if wait_s is None else min(wait_s, _MAX_WAIT_S) + _MARGIN_S
        return parse(Run, await self._transport.get(run_path(run_id), params, read_timeout_s=read_timeout_s))

    async def wait(self, run_id: str, *, timeout_s: float | None = None) -> Run:
        """Return the run once it is finished.

        Raises:
            WaitTimedOut: it was not finished after `timeout_s`; it goes on.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            left_s = LONG_POLL_S if timeout_s is None else max(0.0, timeout_s - (clock() - began))
            run = await self.get_run(run_id, wait_s=min(LONG_POLL_S, left_s))
            if run.finished:
                return run
            if timeout_s is not None and clock() - began >= timeout_s:
                raise WaitTimedOut(f"run {run_id} is still {run.status} after {timeout_s:g} s")

    def list_runs(
        self, *, session_id: str | None = None, status: str | None = None, limit: int | None = None
    ) -> AsyncGenerator[Run, None]:
        """Iterate over runs without their output, newest first; `limit` of them, or all."""
        params = {"session_id": session_id, "status": status}
        return paginate(self._transport, "/v1/runs", Run, params=params, limit=limit)

    async def cancel(self, run_id: str) -> Run | None:
        """Cancel a run in whatever state it is; again changes nothing."""
        answer = await self._transport.post(f"{run_path(run_id)}/cancel", {})
        return parse(Run, answer) if isinstance(answer, dict) and "tenant_id" in answer else None

    async def events(self, run_id: str, *, after: int | str | None = None) -> AsyncGenerator[RunEvent, None]:
        """Iterate over a run's events from the start, or after a durable event's number, until `run.finished`.

        Broken connections are resumed without a gap among durable events; live output is best effort.

        Raises:
            EventsExpired: the events after `after` are past their retention; `get_run` still tells how it ended.
        """
        follower = Follower(self._transport, run_path(run_id), after=after)
        async with aclosing(follower.events()) as events:
            async for event in events:
                yield event


def _step(item: StepSpec | str) -> StepSpec:
    return StepSpec(bash=Bash(command=item)) if isinstance(item, str) else item


def _upstreams(given: Upstreams | None) -> dict[str, Upstream] | None:
    if given is None:
        return None
    return {
        name: build(Upstream, {"bearer": value}) if isinstance(value, str) else value for name, value in given.items()
    }
