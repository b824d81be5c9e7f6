"""A gateway of the API's form without a plane behind it: a real HTTP server on loopback that plays scripted runs.

It knows the rules that a client must get right: who calls, idempotency keys, pages, and event streams with ids.
"""

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.played_runs import Behaviour, FakeRun, now

PLATFORM_KEY = "csn_0123456789abcdef01_" + "ab" * 32
TENANT_KEY = "csn_fedcba987654321098_" + "cd" * 32
KEYS: dict[str, str | None] = {PLATFORM_KEY: None, TENANT_KEY: "acme"}


Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Recorded:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class RawStream:
    """An event stream as bytes; one that is not `clean` ends with the connection cut."""

    data: bytes
    clean: bool = True


class Cut(Exception):
    """Makes the server drop the connection in the middle of an answer."""


class FakeApi:
    """The server: `with FakeApi() as api:` runs it on a thread of its own. Tests read and set its fields."""

    def __init__(self) -> None:
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self.exec_gate = threading.Event()
        self.reset()

    def reset(self) -> None:
        """Forget everything that happened and that was scripted."""
        self.requests: list[Recorded] = []
        self.runs: dict[str, FakeRun] = {}
        self.behaviours: dict[str, Behaviour] = {}
        self.refusals: deque[Response] = deque()
        self.streams: deque[RawStream | Response] = deque()
        self.sessions: list[dict[str, Any]] = []
        self.deleted_sessions: set[str] = set()
        self.keys: list[dict[str, Any]] = []
        self.credentials: dict[tuple[str, str], dict[str, str]] = {}
        self.tenants: dict[str, dict[str, Any]] = {}
        self.security_events: list[dict[str, Any]] = []
        self.answers: dict[str, tuple[bytes, Response | None]] = {}
        self.ready = True
        self.exec_gate.set()

    def __enter__(self) -> Self:
        self._server = uvicorn.Server(
            uvicorn.Config(self._application(), port=0, log_config=None, lifespan="off", ws="none", http="h11")
        )
        self._thread = threading.Thread(target=self._serve, name="fake-api")
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.exec_gate.set()
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)

    @property
    def commands(self) -> list[str]:
        """Every command that was run, in order."""
        return [command for run in self.runs.values() for command in run.commands]

    def seen(self, method: str, path: str) -> list[Recorded]:
        """The requests to a path."""
        return [item for item in self.requests if (item.method, item.path) == (method, path)]

    def _serve(self) -> None:
        asyncio.run(self._serve_until_stopped())

    async def _serve_until_stopped(self) -> None:
        serving = asyncio.create_task(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.005)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._started.set()
        await serving
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _application(self) -> Starlette:
        routes = [
            ("/v1/runs", "POST", self._create_run),
            ("/v1/runs", "GET", self._list_runs),
            ("/v1/runs/{run_id}", "GET", self._get_run),
            ("/v1/runs/{run_id}/cancel", "POST", self._cancel_run),
            ("/v1/runs/{run_id}/events", "GET", self._events),
            ("/v1/runs/{run_id}/steps/{step_id}/{name}", "GET", self._output),
            ("/v1/exec", "POST", self._exec),
            ("/v1/sessions", "POST", self._create_session),
            ("/v1/sessions", "GET", self._list_sessions),
            ("/v1/sessions/{session_id}", "GET", self._get_session),
            ("/v1/sessions/{session_id}", "DELETE", self._delete_session),
            ("/v1/tenants/{tenant_id:path}/credentials/{upstream}", "PUT", self._put_credential),
            ("/v1/tenants/{tenant_id:path}/credentials/{upstream}", "DELETE", self._delete_credential),
            ("/v1/tenants/{tenant_id:path}", "PUT", self._put_tenant),
            ("/v1/tenants/{tenant_id:path}", "GET", self._get_tenant),
            ("/v1/keys", "POST", self._create_key),
            ("/v1/keys", "GET", self._list_keys),
            ("/v1/keys/{key_id}", "DELETE", self._revoke_key),
            ("/v1/security-events", "GET", self._list_security_events),
            ("/readyz", "GET", self._readyz),
        ]
        return Starlette(
            routes=[Route(path, self._edge(handler), methods=[method]) for path, method, handler in routes]
        )

    def _edge(self, handler: Handler) -> Handler:
        async def edge(request: Request) -> Response:
            body = await request.body()
            headers = {name.decode(): value.decode() for name, value in request.headers.raw}
            parsed = json.loads(body) if body else None
            self.requests.append(Recorded(request.method, request.scope["raw_path"].decode(), headers, parsed))
            if self.refusals:
                return self.refusals.popleft()
            key = headers.get("authorization", "").removeprefix("Bearer ")
            if key not in KEYS:
                return problem(401, "unauthenticated", "a valid API key is needed")
            request.state.tenant = headers.get("caisson-tenant", KEYS[key])
            request.state.user = headers.get("caisson-user", "key:tenant" if KEYS[key] else None)
            request.state.body = parsed
            about = request.path_params.get("tenant_id")
            if about and request.state.tenant not in {None, about}:
                return problem(403, "tenant_mismatch", "the path names another tenant than the caller acts for")
            if KEYS[key] not in {None, request.state.tenant}:
                return problem(403, "tenant_mismatch", "this key belongs to another tenant")
            if request.method == "POST" and "idempotency-key" in headers:
                return await self._once(request, headers["idempotency-key"], body, handler)
            return await handler(request)

        return edge

    async def _once(self, request: Request, key: str, body: bytes, handler: Handler) -> Response:
        digest = request.url.path.encode() + body
        if key in self.answers:
            known, answer = self.answers[key]
            if known != digest:
                return problem(422, "idempotency_key_reused", "it came with another body or path", "Idempotency-Key")
            if answer is None:
                return problem(409, "idempotency_in_progress", "not answered yet", headers={"Retry-After": "0"})
            return Response(answer.body, answer.status_code, headers={"Idempotency-Replayed": "true"})
        self.answers[key] = digest, None
        answer = await handler(request)
        if answer.status_code in {422, 500, 503}:
            del self.answers[key]
        else:
            self.answers[key] = digest, answer
        return answer

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
            return raw if isinstance(raw, Response) else event_stream(_raw(raw))
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

    async def _create_session(self, request: Request) -> Response:
        if request.state.user is None:
            return problem(422, "user_required", "a platform key must name the user", "Caisson-User")
        session = {
            "id": f"ses_{len(self.sessions) + len(self.deleted_sessions)}",
            "tenant_id": request.state.tenant,
            "user_id": request.state.user,
            "metadata": (request.state.body or {}).get("metadata", {}),
            "created_at": now(),
            "deleting_at": None,
        }
        self.sessions.append(session)
        return JSONResponse(session, 201)

    async def _list_sessions(self, request: Request) -> Response:
        return page(request, self.sessions[::-1])

    async def _get_session(self, request: Request) -> Response:
        found = self._session(request.path_params["session_id"])
        return JSONResponse(found) if found else problem(404, "not_found", "no such session")

    async def _delete_session(self, request: Request) -> Response:
        session_id = request.path_params["session_id"]
        found = self._session(session_id)
        if found is None:
            gone = session_id in self.deleted_sessions
            return Response(status_code=204) if gone else problem(404, "not_found", "no such session")
        found["deleting_at"] = found["deleting_at"] or now()
        own = {id_: run for id_, run in self.runs.items() if run.document["session_id"] == session_id}
        for run in own.values():
            run.cancelled.set()
        if not all(run.final for run in own.values()):
            return JSONResponse(found, 202)
        self.sessions.remove(found)
        self.deleted_sessions.add(session_id)
        self.runs = {id_: run for id_, run in self.runs.items() if id_ not in own}
        return Response(status_code=204)

    def _session(self, session_id: str) -> dict[str, Any] | None:
        return next((item for item in self.sessions if item["id"] == session_id), None)

    async def _put_tenant(self, request: Request) -> Response:
        tenant = self.tenants.setdefault(request.path_params["tenant_id"], {"uid": 10001, "max_concurrency": 32})
        tenant.update(request.state.body, id=request.path_params["tenant_id"])
        return JSONResponse(tenant)

    async def _get_tenant(self, request: Request) -> Response:
        tenant = self.tenants.get(request.path_params["tenant_id"])
        return JSONResponse(tenant) if tenant else problem(404, "not_found", "no such tenant")

    async def _put_credential(self, request: Request) -> Response:
        self.credentials[request.path_params["tenant_id"], request.path_params["upstream"]] = request.state.body
        return JSONResponse({"upstream": request.path_params["upstream"]})

    async def _delete_credential(self, request: Request) -> Response:
        del self.credentials[request.path_params["tenant_id"], request.path_params["upstream"]]
        return Response(status_code=204)

    async def _create_key(self, request: Request) -> Response:
        body = request.state.body
        key_id = f"csn_{len(self.keys):018x}"
        shown = {"id": key_id, "prefix": key_id, "name": body["name"], "tenant_id": body.get("tenant_id")}
        self.keys.append({**shown, "created_at": now(), "revoked_at": None})
        return JSONResponse({**shown, "key": f"{key_id}_secret"}, 201)

    async def _list_keys(self, request: Request) -> Response:
        return page(request, self.keys[::-1])

    async def _revoke_key(self, request: Request) -> Response:
        for key in self.keys:
            if key["id"] == request.path_params["key_id"]:
                key["revoked_at"] = now()
                return Response(status_code=204)
        return problem(404, "not_found", "no such key")

    async def _list_security_events(self, request: Request) -> Response:
        since = request.query_params.get("since", "")
        return page(request, [event for event in self.security_events if event["occurred_at"] >= since])

    async def _readyz(self, _: Request) -> Response:
        if self.ready:
            return JSONResponse({"status": "ok", "checks": ["bus", "database"]})
        return JSONResponse({"status": "unavailable", "failing": {"bus": "not connected"}}, 503)


RUN_FIELDS = {
    "session_id", "steps", "env", "datasets", "upstreams", "limits", "on_failure", "on_lost", "metadata", "workspace",
    "interactive", "artifacts", "files",
}  # fmt: skip


def problem(
    status: int,
    code: str,
    detail: str,
    field_name: str | None = None,
    message: str | None = None,
    *,
    headers: dict[str, str] | None = None,
) -> Response:
    body: dict[str, Any] = {"type": f"urn:caisson:problem:{code}", "status": status, "detail": detail, "code": code}
    if field_name:
        body["errors"] = [{"field": field_name, "message": message or detail}]
    return JSONResponse(body, status, headers=headers, media_type="application/problem+json")


def page(request: Request, items: list[dict[str, Any]]) -> Response:
    start, limit = int(request.query_params.get("cursor", 0)), int(request.query_params.get("limit", 50))
    more = start + limit < len(items)
    return JSONResponse({"items": items[start : start + limit], "next_cursor": str(start + limit) if more else None})


def event_stream(frames: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(frames, media_type="text/event-stream")


async def _raw(stream: RawStream) -> AsyncIterator[bytes]:
    yield stream.data
    if not stream.clean:
        raise Cut
