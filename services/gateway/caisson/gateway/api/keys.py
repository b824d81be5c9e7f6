"""`/v1/keys`: API keys, shown once, listable by prefix, revocable at once."""

import json
from http import HTTPStatus

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from caisson.common.errors import InvalidInput
from caisson.common.ids import TenantId, check_external_id
from caisson.common.messages import Message
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.callers import Callers
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.models import KeyAnswer, NewKeyAnswer, PageAnswer
from caisson.gateway.domain.pages import request_page
from caisson.gateway.domain.principals import KeyKind, mint
from caisson.gateway.domain.tenancy import KeyRecord, Keys

MAX_NAME_CHARS = 128


class KeyRequest(Message):
    """The body of POST /v1/keys: a tenant's key with `tenant_id`, a platform key without."""

    name: str = "unnamed"
    tenant_id: str | None = None


def routes(callers: Callers, keys: Keys, idempotency: Idempotency) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=StrictRoute, tags=["keys"])

    @router.post("/v1/keys", status_code=201, response_model=NewKeyAnswer)
    async def create_key(request: Request, body: KeyRequest) -> Response:
        """Make a key. Its text is in this answer and nowhere else."""
        caller = await callers.recognise(request)
        caller.require_platform()
        if not 1 <= len(body.name) <= MAX_NAME_CHARS or not body.name.isprintable():
            raise InvalidInput(f"1 to {MAX_NAME_CHARS} printable characters", field="name")
        tenant = None if body.tenant_id is None else TenantId(check_external_id(body.tenant_id, field="tenant_id"))
        kind = KeyKind.PLATFORM if tenant is None else KeyKind.TENANT

        async def act(_: str) -> Response:
            minted = mint()
            await keys.create(minted, kind=kind, name=body.name, tenant=tenant)
            shown = {"id": minted.key_id, "prefix": minted.key_id, "kind": kind, "name": body.name}
            made = NewKeyAnswer(**shown, tenant_id=tenant, key=minted.token)
            return answer(made, status=HTTPStatus.CREATED)

        return await idempotency.once(request, caller, "key", act, remember=_without_text)

    @router.get("/v1/keys", response_model=PageAnswer[KeyAnswer])
    async def list_keys(
        request: Request, prefix: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Response:
        """List keys: of the tenant that the caller acts for, or all where a platform key names none."""
        caller = await callers.recognise(request)
        page = await keys.page(request_page(limit, cursor), tenant=caller.principal.tenant, prefix=prefix)
        items = [_key_answer(key) for key in page.items]
        return answer(PageAnswer[KeyAnswer](items=items, next_cursor=page.next_cursor))

    @router.delete("/v1/keys/{key_id}", status_code=204)
    async def revoke_key(request: Request, key_id: str) -> Response:
        """Revoke a key: the next request with it is refused."""
        caller = await callers.recognise(request)
        await keys.revoke(key_id, tenant=caller.principal.key.tenant)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    return router


def _without_text(body: bytes) -> bytes:
    """Keep the key's text out of the ledger: a replayed answer has `key: null`."""
    return json.dumps({**json.loads(body), "key": None}).encode()


def _key_answer(key: KeyRecord) -> KeyAnswer:
    return KeyAnswer(
        id=key.key_id,
        prefix=key.key_id,
        kind=key.kind,
        name=key.name,
        tenant_id=key.tenant_id,
        created_at=key.created_at,
        revoked_at=key.revoked_at,
    )
