"""`/v1/memories`: remember, list, read, correct, forget."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from caisson.common import subjects
from caisson.common.memories import (
    ById,
    History,
    LayerName,
    ListMemories,
    MemoryPage,
    MemoryView,
    Receipt,
    Remember,
    RememberedAll,
)
from caisson.common.memory_upkeep import Usage, UsageOf
from caisson.common.moments import Moment
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.memory_calls import MemoryCalls
from caisson.gateway.api.memory_models import ChangesRequest, MemoryList, RememberRequest
from caisson.gateway.domain.pages import cursor_after, request_page

_LIST = "memories:"
AsOf = Annotated[Moment | None, Query(description="what was in force then")]


def routes(memory: MemoryCalls, idempotency: Idempotency) -> APIRouter:
    """Return the routes. A path of a name stands before that of an id."""
    router = APIRouter(route_class=StrictRoute, tags=["memories"])

    @router.post("/v1/memories", response_model=RememberedAll)
    async def remember(request: Request, body: RememberRequest) -> Response:
        """Remember one thing or several; each is answered with what became of it."""
        caller, whom = await memory.recognise(request)

        async def act(_: str) -> Response:
            message = Remember(caller=whom, memories=body.given())
            told = await memory.ask(subjects.MEMORY_REMEMBER, message, RememberedAll)
            return _remembered(told, one=body.is_one)

        return await idempotency.once(request, caller, "rem", act)

    @router.get("/v1/memories", response_model=MemoryList)
    async def list_memories(
        request: Request,
        layer: LayerName | None = None,
        status: Literal["active", "cold"] | None = None,
        subject: str | None = None,
        as_of: AsOf = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Response:
        """List what the caller may see, newest first."""
        _, whom = await memory.recognise(request)
        page = request_page(limit, cursor, kind=_LIST)
        message = ListMemories(
            caller=whom,
            limit=page.limit,
            before=page.before,
            layer=layer,
            status=status,
            subject=subject,
            as_of=as_of,
        )
        found = await memory.ask(subjects.MEMORY_LIST, message, MemoryPage)
        following = None if found.next_before is None else cursor_after(found.next_before, kind=_LIST)
        return answer(MemoryList(items=found.items, next_cursor=following))

    @router.get("/v1/memories/usage", response_model=Usage)
    async def usage(request: Request) -> Response:
        """Return rows and bytes of the user and of the tenant, against their quotas."""
        _, whom = await memory.recognise(request)
        return answer(await memory.ask(subjects.MEMORY_USAGE, UsageOf(caller=whom), Usage))

    @router.get("/v1/memories/{memory_id}", response_model=MemoryView)
    async def get_memory(request: Request, memory_id: str, as_of: AsOf = None) -> Response:
        """Return a memory by its id or the product's own; another's is as unknown as one that never was."""
        _, whom = await memory.recognise(request)
        message = ById(caller=whom, id=memory_id, as_of=as_of)
        return answer(await memory.ask(subjects.MEMORY_GET, message, MemoryView))

    @router.patch("/v1/memories/{memory_id}", response_model=MemoryView)
    async def patch_memory(request: Request, memory_id: str, body: ChangesRequest) -> Response:
        """Correct a memory; what is left out stays, and null removes `valid_to` or `expires_at`."""
        _, whom = await memory.recognise(request)
        message = body.message(whom, memory_id)
        return answer(await memory.ask(subjects.MEMORY_PATCH, message, MemoryView))

    @router.delete("/v1/memories/{memory_id}", response_model=Receipt)
    async def forget(request: Request, memory_id: str) -> Response:
        """Forget a memory and everything made from it; the receipt tells what was touched."""
        _, whom = await memory.recognise(request)
        return answer(await memory.ask(subjects.MEMORY_DELETE, ById(caller=whom, id=memory_id), Receipt))

    @router.get("/v1/memories/{memory_id}/history", response_model=History)
    async def history(request: Request, memory_id: str, as_of: AsOf = None) -> Response:
        """Return every version of a memory and of the facts before and after it, oldest first."""
        _, whom = await memory.recognise(request)
        message = ById(caller=whom, id=memory_id, as_of=as_of)
        return answer(await memory.ask(subjects.MEMORY_HISTORY, message, History))

    return router


def _remembered(told: RememberedAll, *, one: bool) -> Response:
    if not one:
        return answer(told)
    result = told.results[0]
    made = result.status in {"created", "superseded"}
    headers = {"Location": f"/v1/memories/{result.id}"} if result.id else None
    return answer(result, status=HTTPStatus.CREATED if made else HTTPStatus.OK, headers=headers)
