"""What the fake gateway keeps of tenants: settings, credentials, keys, security events."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.support.fake_api_answers import page, problem
from tests.support.played_runs import now


class FakeAdministration:
    """Tenants and what belongs to them."""

    tenants: dict[str, dict[str, Any]]
    credentials: dict[tuple[str, str], dict[str, str]]
    keys: list[dict[str, Any]]
    security_events: list[dict[str, Any]]
    ready: bool

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
