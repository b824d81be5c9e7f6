"""The fake gateway's sessions: they end with their runs."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.support.fake_api_answers import page, problem
from tests.support.played_runs import FakeRun, now


class FakeSessions:
    """Sessions, and what their end does to runs."""

    runs: dict[str, FakeRun]
    sessions: list[dict[str, Any]]
    deleted_sessions: set[str]

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
