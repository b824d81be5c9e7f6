"""A gateway of the API's form without a plane behind it: a real HTTP server on loopback that plays scripted runs.

It knows the rules that a client must get right: who calls, idempotency keys, pages, and event streams with ids.
"""

import asyncio
import json
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.fake_api_administration import FakeAdministration
from tests.support.fake_api_answers import RawStream, problem
from tests.support.fake_api_runs import FakeRuns
from tests.support.played_runs import Behaviour, FakeRun

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


class FakeApi(FakeRuns, FakeAdministration):
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
        self.scripted: deque[Response] = deque()
        self.streams: deque[RawStream | Response] = deque()
        self.sessions: list[dict[str, Any]] = []
        self.deleted_sessions: set[str] = set()
        self.keys: list[dict[str, Any]] = []
        self.credentials: dict[tuple[str, str], dict[str, str]] = {}
        self.tenants: dict[str, dict[str, Any]] = {}
        self.security_events: list[dict[str, Any]] = []
        self.answers: dict[tuple[str | None, str | None, str], tuple[bytes, Response | None]] = {}
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
            ("/v1/memories", "POST", self._unscripted),
            ("/v1/memories/distil", "POST", self._unscripted),
            ("/v1/memories/{memory_id}", "PATCH", self._unscripted),
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
            if self.scripted:
                return self.scripted.popleft()
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

    async def _unscripted(self, _: Request) -> Response:
        return problem(404, "not_found", "nothing is remembered here: a test scripts the answer")

    async def _once(self, request: Request, key: str, body: bytes, handler: Handler) -> Response:
        digest = request.url.path.encode() + body
        place = request.state.tenant, request.state.user, key
        if place in self.answers:
            known, answer = self.answers[place]
            if known != digest:
                return problem(422, "idempotency_key_reused", "it came with another body or path", "Idempotency-Key")
            if answer is None:
                return problem(409, "idempotency_in_progress", "not answered yet", headers={"Retry-After": "0"})
            return Response(answer.body, answer.status_code, headers={"Idempotency-Replayed": "true"})
        self.answers[place] = digest, None
        answer = await handler(request)
        if answer.status_code in {422, 500, 503}:
            del self.answers[place]
        else:
            self.answers[place] = digest, answer
        return answer
