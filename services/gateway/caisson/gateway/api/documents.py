"""The API's own documents: what every operation shares is declared once, and the page sends nothing."""

from typing import Any

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "stable; programs decide by it"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
_REFUSED = {
    "description": "refused, with a stable code and, for bad input, the fields",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_ACTING_FOR = [
    {
        "name": name,
        "in": "header",
        "required": False,
        "schema": {"type": "string", "maxLength": 128},
        "description": f"the {noun} that a platform key acts for",
    }
    for name, noun in (("Caisson-Tenant", "tenant"), ("Caisson-User", "user"))
]
_SCOPES = {
    "name": "Caisson-Scopes",
    "in": "header",
    "required": False,
    "schema": {"type": "string"},
    "description": "scopes of memories that a platform key grants, between commas; one with a comma stands in quotes",
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": 255},
    "description": "the same key and body is answered once and then replayed, to the same API key, tenant and user",
}
_METHODS = frozenset({"get", "put", "post", "patch", "delete"})


def documented_api(*, version: str) -> FastAPI:
    """Return an application whose OpenAPI document names keys, headers and problems on every operation.

    Its page brings its own assets and has no button that sends a request.
    """
    application: FastAPI = FastAPIOffline(
        title="Caisson",
        version=version,
        description="The execution plane's HTTP API, version 1.",
        swagger_ui_parameters={"supportedSubmitMethods": []},
        redoc_url=None,
        redirect_slashes=False,
    )
    plain = application.openapi
    shared: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not shared:
            shared.update(_with_shared_parts(plain()))
        return shared

    application.openapi = openapi  # type: ignore[method-assign]  # the framework's documented way
    return application


def _with_shared_parts(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    components["securitySchemes"] = {"ApiKey": {"type": "http", "scheme": "bearer"}}
    components.setdefault("schemas", {})["Problem"] = _PROBLEM
    document["security"] = [{"ApiKey": []}]
    for path in document["paths"].values():
        for method in _METHODS & path.keys():
            operation = path[method]
            extra = [_IDEMPOTENCY_KEY] if method == "post" else []
            scopes = [_SCOPES] if "memories" in operation.get("tags", []) else []
            operation["parameters"] = [*operation.get("parameters", []), *_ACTING_FOR, *scopes, *extra]
            operation["responses"].pop("422", None)
            operation["responses"]["4XX"] = _REFUSED
    return document
