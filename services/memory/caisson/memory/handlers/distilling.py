"""Distilling candidates in slices: each call works for a few seconds, saves, and says how to go on."""

from time import monotonic
from typing import Final

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import InvalidInput
from caisson.common.memory_upkeep import Distil, Distilled
from caisson.memory.domain.admission import check_size, refuse_text
from caisson.memory.domain.distilling import Distiller, first_state
from caisson.memory.domain.jobs import Job, JobKind, Jobs
from caisson.memory.domain.long_texts import beside
from caisson.memory.domain.principals import Principal
from caisson.memory.handlers.callers import principal_of

_SLICE_S: Final = 3.0


class DistillingHandlers:
    """Distils for whoever asks."""

    def __init__(self, jobs: Jobs, distiller: Distiller, *, slice_s: float = _SLICE_S) -> None:
        self._jobs = jobs
        self._distiller = distiller
        self._slice_s = slice_s

    def register(self, bus: Bus) -> None:
        """Serve distillation on `bus`."""
        bus.serve(subjects.MEMORY_DISTIL, Distil, self.distil)

    async def distil(self, request: Distil) -> Distilled:
        """Work for a slice of time on a new or a resumed distillation."""
        principal = principal_of(request.caller)
        job = await self._begin(request, principal)
        deadline = monotonic() + self._slice_s
        while not job.done:
            job = await self._distiller.step(job, principal)
            if monotonic() > deadline:
                break
        if job.fence:
            await self._jobs.save(job)
        selected = await self._distiller.selected(job) if job.done else []
        return Distilled(job_id=job.job_id, selected=selected, stages=job.receipt["stages"], complete=job.done)

    async def _begin(self, request: Distil, principal: Principal) -> Job:
        if request.resume is not None:
            return await self._jobs.resume(JobKind.DISTIL, principal, request.resume)
        offered = request.candidates
        if not offered:
            raise InvalidInput("candidates must not be empty", field="candidates")
        for position, text in enumerate(offered):
            check_size(text, field=f"candidates.{position}")
        kept = await beside(offered, lambda: [text for text in offered if refuse_text(text) is None])
        job = await self._jobs.open(JobKind.DISTIL, principal, first_state(request.target))
        return await self._distiller.begin(job, principal, kept, offered=len(offered))
