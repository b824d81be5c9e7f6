"""The fake gateway's runs: scripted commands, their events and outputs."""

import asyncio
import threading
from collections import deque
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.support.fake_api_answers import RawStream, event_stream, page, problem, raw_frames
from tests.support.fake_api_sessions import FakeSessions
from tests.support.played_runs import Behaviour, FakeRun

RUN_FIELDS = {
    "session_id", "steps", "env", "datasets", "upstreams", "limits", "on_failure", "on_lost", "metadata", "workspace",
    "interactive", "artifacts", "files",
}  # fmt: skip


class FakeRuns(FakeSessions):
    """Runs that play what tests script."""

    behaviours: dict[str, Behaviour]
    streams: deque[RawStream | Response]
    exec_gate: threading.Event
    _tasks: set[asyncio.Task[None]]

    def _start(self, request: Request, body: dict[str, Any]) -> FakeRun | Response:
        for name, value in (("user", request.state.user), ("tenant", request.state.tenant)):
            if value is None:
                return problem(
                    422, f"{name}_required", f"a platform key must name the {name}", f"Caisson-{name.title()}"
                )
        unknown = sorted(body.keys() - RUN_FIELDS)
        if unknown:
            return problem(422, "invalid_input", "1 field is not valid", unknown[0], "Extra inputs are not permitted")
        if body.get("limits", {}).get("memory_mib", 0) > 2048:
            return problem(422, "limit_exceeded", "memory_mib: at most 2048", "limits.memory_mib", "at most 2048")
        if (session_id := body.get("session_id")) is not None:
            session = self._session(session_id)
            if session is None:
                return problem(404, "not_found", "no such session")
            if session["deleting_at"]:
                return problem(409, "session_deleting", "no run begins in it")
        run = FakeRun(len(self.runs) + 1, body, request.state.tenant, request.state.user)
        run.events.append(("run.queued", {}))
        self.runs[run.id] = run
        task = asyncio.create_task(run.play(self.behaviours))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def _create_run(self, request: Request) -> Response:
        run = self._start(request, request.state.body)
        return run if isinstance(run, Response) else JSONResponse(run.document, 202)

    async def _exec(self, request: Request) -> Response:
        given = dict(request.state.body)
        bash = {name: given.pop(name) for name in ("command", "timeout_s") if name in given}
        run = self._start(request, {**given, "steps": [{"bash": bash}]})
        if isinstance(run, Response):
            return run
        await asyncio.to_thread(self.exec_gate.wait)
        await self._until_final(run, 60)
        return JSONResponse({**run.document["steps"][0], "run_id": run.id, "run_status": run.document["status"]})

    async def _until_final(self, run: FakeRun, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s), run.changed:
                await run.changed.wait_for(lambda: run.final)
        except TimeoutError:
            return

    def _find(self, request: Request) -> FakeRun | Response:
        if request.state.tenant is None:
            return problem(422, "tenant_required", "a platform key must name the tenant", "Caisson-Tenant")
        run = self.runs.get(request.path_params["run_id"])
        if run is None or request.state.tenant != run.document["tenant_id"]:
            return problem(404, "not_found", "no such run")
        return run

    async def _get_run(self, request: Request) -> Response:
        run = self._find(request)
        if isinstance(run, Response):
            return run
        await self._until_final(run, float(request.query_params.get("wait_s", 0)))
        return JSONResponse(run.document)

    async def _list_runs(self, request: Request) -> Response:
        if request.state.tenant is None:
            return problem(422, "tenant_required", "a platform key must name the tenant", "Caisson-Tenant")
        wanted = {
            name: request.query_params[name] for name in ("status", "session_id") if name in request.query_params
        }
        found = [
            {**run.document, "steps": [{**step, "stdout": None, "stderr": None} for step in run.document["steps"]]}
            for run in reversed(self.runs.values())
            if wanted.items() <= run.document.items() and run.document["tenant_id"] == request.state.tenant
        ]
        return page(request, found)

    async def _cancel_run(self, request: Request) -> Response:
        run = self._find(request)
        if isinstance(run, Response):
            return run
        run.cancelled.set()
        if not any(self.behaviours.get(command, Behaviour()).deaf for command in run.commands):
            await self._until_final(run, 2)
        return JSONResponse(run.document, 202)

    async def _events(self, request: Request) -> Response:
        if self.streams:
            raw = self.streams.popleft()
            return raw if isinstance(raw, Response) else event_stream(raw_frames(raw))
        run = self._find(request)
        if isinstance(run, Response):
            return run
        after = int(request.headers.get("last-event-id", "0"))
        if run.final and after >= len(run.events):
            return Response(status_code=204)
        return event_stream(run.frames(after))

    async def _output(self, request: Request) -> Response:
        run = self._find(request)
        if isinstance(run, Response):
            return run
        data = run.outputs.get((request.path_params["step_id"], request.path_params["name"]))
        if data is None:
            return problem(404, "not_found", "no such output")
        start = int(request.headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        return Response(data[start:], 206 if start else 200, media_type="application/octet-stream")
