"""`/v1/users/{id}/memories`: everything remembered about one user, handed out or erased; and receipts of deletions.

A platform key may ask for any user of the tenant it acts for; a tenant key only as that user.
"""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from caisson.common import subjects
from caisson.common.ids import check_external_id
from caisson.common.memories import Exported, OfUser, Receipt, ReceiptOf
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.memory_calls import LONG_S, MemoryCalls
from caisson.gateway.api.memory_models import MemoryList
from caisson.gateway.domain.pages import cursor_after, request_page

_ERASED_AT_ONCE = 2_000
_EXPORT = "export:"


def routes(memory: MemoryCalls) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=StrictRoute, tags=["memories"])

    @router.get("/v1/users/{user_id}/memories/export", response_model=MemoryList)
    async def export(request: Request, user_id: str, limit: int | None = None, cursor: str | None = None) -> Response:
        """Return everything remembered about a user, superseded and cold too, in pages."""
        _, whom = await memory.recognise(request, scopes=[_own_scope(user_id)])
        page = request_page(limit, cursor, kind=_EXPORT)
        message = OfUser(caller=whom, user_id=user_id, resume=page.before, limit=page.limit)
        found = await memory.ask(subjects.MEMORY_EXPORT_USER, message, Exported)
        following = None if found.resume is None else cursor_after(found.resume, kind=_EXPORT)
        return answer(MemoryList(items=found.items, next_cursor=following))

    @router.delete("/v1/users/{user_id}/memories", response_model=Receipt)
    async def erase(
        request: Request, user_id: str, resume: Annotated[str | None, Query(description="a receipt's resume")] = None
    ) -> Response:
        """Erase everything remembered about a user; while `complete` is false, repeat with `resume`."""
        _, whom = await memory.recognise(request, scopes=[_own_scope(user_id)])
        message = OfUser(caller=whom, user_id=user_id, resume=resume, limit=_ERASED_AT_ONCE)
        return answer(await memory.ask(subjects.MEMORY_ERASE_USER, message, Receipt, timeout_s=LONG_S))

    @router.get("/v1/memories/receipts/{receipt_id}", response_model=Receipt)
    async def get_receipt(request: Request, receipt_id: str) -> Response:
        """Return a deletion's receipt as it stands now, by its own id or the deleted memory's, for 90 days."""
        _, whom = await memory.recognise(request)
        return answer(await memory.ask(subjects.MEMORY_RECEIPT, ReceiptOf(caller=whom, id=receipt_id), Receipt))

    return router


def _own_scope(user_id: str) -> str:
    return f"user:{check_external_id(user_id, field='user_id')}"
