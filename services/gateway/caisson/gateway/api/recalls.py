"""Recall over HTTP, and the memory service's longer work.

An `Idempotency-Key` is not kept for what reads: a stored answer would be a copy of memories that deleting does not
reach. Asking twice changes nothing; only feedback does, and it is taken once.
"""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from caisson.common import subjects
from caisson.common.memory_upkeep import (
    Consolidate,
    Consolidation,
    ConsolidationPlan,
    Distil,
    Distillation,
    Distilled,
    Reconcile,
    Reconciled,
)
from caisson.common.recalls import Context, Feedback, FeedbackTaken, Query, Recalled, Reward, Search
from caisson.gateway.api.answers import answer
from caisson.gateway.api.bodies import StrictRoute
from caisson.gateway.api.idempotent import Idempotency
from caisson.gateway.api.memory_calls import LONG_S, MemoryCalls


def routes(memory: MemoryCalls, idempotency: Idempotency) -> APIRouter:
    """Return the routes."""
    router = APIRouter(route_class=StrictRoute, tags=["memories"])

    @router.post("/v1/memories/search", response_model=Recalled)
    async def search(request: Request, body: Query) -> Response:
        """Return the memories nearest to a query, with what happened on the way."""
        _, whom = await memory.recognise(request)
        message = Search.model_validate({"caller": whom} | body.model_dump(exclude_unset=True))
        return answer(await memory.ask(subjects.MEMORY_SEARCH, message, Recalled))

    @router.post("/v1/memories/context", response_model=Context)
    async def context(request: Request, body: Query) -> Response:
        """Return the same as text for a model: each memory quoted as data, with provenance."""
        _, whom = await memory.recognise(request)
        message = Search.model_validate({"caller": whom} | body.model_dump(exclude_unset=True))
        return answer(await memory.ask(subjects.MEMORY_CONTEXT, message, Context))

    @router.post("/v1/memories/feedback", response_model=FeedbackTaken)
    async def feedback(request: Request, body: Reward) -> Response:
        """Say what a recall was worth; its memories learn from it, once."""
        caller, whom = await memory.recognise(request)

        async def act(_: str) -> Response:
            message = Feedback(caller=whom, retrieval_id=body.retrieval_id, reward=body.reward)
            return answer(await memory.ask(subjects.MEMORY_FEEDBACK, message, FeedbackTaken))

        return await idempotency.once(request, caller, "fdb", act)

    @router.post("/v1/memories/consolidate", response_model=ConsolidationPlan)
    async def consolidate(request: Request, body: Consolidation) -> Response:
        """Make one memory of several episodes; with `dry_run`, show what would become of them."""
        _, whom = await memory.recognise(request)
        message = Consolidate(caller=whom, dry_run=body.dry_run, due=body.due)
        return answer(await memory.ask(subjects.MEMORY_CONSOLIDATE, message, ConsolidationPlan, timeout_s=LONG_S))

    @router.post("/v1/memories/distil", response_model=Distilled)
    async def distil(request: Request, body: Distillation) -> Response:
        """Distil many candidates to a few; `resume` goes on with an unfinished job."""
        _, whom = await memory.recognise(request)
        message = Distil.model_validate({"caller": whom} | body.model_dump(exclude_unset=True))
        return answer(await memory.ask(subjects.MEMORY_DISTIL, message, Distilled, timeout_s=LONG_S))

    @router.post("/v1/memories/reconcile", response_model=Reconciled)
    async def reconcile(request: Request) -> Response:
        """Compare store and index for the caller's tenant, and mend the index."""
        _, whom = await memory.recognise(request)
        return answer(
            await memory.ask(subjects.MEMORY_RECONCILE, Reconcile(caller=whom), Reconciled, timeout_s=LONG_S)
        )

    return router
