"""A small multi-tenant API, as a product would have one behind the proxy.

It demands a bearer token, knows which tenant each token belongs to, and answers only for that tenant.

    METRICS_TOKENS='{"token-of-acme": "acme"}' python examples/metrics_api.py --port 9400
"""

import argparse
import json
import os

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

ORDERS = {
    "acme": [{"region": "eu", "total": 1200}, {"region": "us", "total": 800}, {"region": "eu", "total": 450}],
    "globex": [{"region": "eu", "total": 99_000}, {"region": "ap", "total": 71_500}],
}


def authorised(request: Request) -> str | None:
    """Return the tenant that the request's token belongs to."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    tenant: str | None = request.app.state.tokens.get(token) if scheme.lower() == "bearer" else None
    return tenant


def refuse(status: int, why: str) -> JSONResponse:
    """Answer with an error."""
    return JSONResponse({"error": why}, status_code=status)


async def totals(request: Request) -> JSONResponse:
    """`GET /v1/totals?tenantId=…`: the tenant's sum."""
    tenant = authorised(request)
    if tenant is None:
        return refuse(401, "a tenant's bearer token is needed")
    if request.query_params.getlist("tenantId") != [tenant]:
        return refuse(403, "the token belongs to another tenant than tenantId names")
    return JSONResponse({"tenant": tenant, "total": sum(order["total"] for order in ORDERS.get(tenant, []))})


async def orders(request: Request) -> JSONResponse:
    """`GET /v1/tenants/{tenant}/orders`: the tenant's orders."""
    tenant = authorised(request)
    if tenant is None:
        return refuse(401, "a tenant's bearer token is needed")
    if request.path_params["tenant"] != tenant:
        return refuse(403, "the token belongs to another tenant than the path names")
    return JSONResponse({"tenant": tenant, "orders": ORDERS.get(tenant, [])})


async def health(_: Request) -> JSONResponse:
    """`GET /healthz`."""
    return JSONResponse({"status": "ok"})


def application(tokens: dict[str, str]) -> Starlette:
    """Return the API for these tokens (token → tenant)."""
    made = Starlette(
        routes=[
            Route("/healthz", health),
            Route("/v1/totals", totals),
            Route("/v1/tenants/{tenant}/orders", orders),
        ]
    )
    made.state.tokens = tokens
    return made


def main() -> None:
    """Serve on loopback until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=9400)
    arguments = parser.parse_args()
    tokens = json.loads(os.environ["METRICS_TOKENS"])
    uvicorn.run(application(tokens), host="127.0.0.1", port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
