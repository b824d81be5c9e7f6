"""Long work in slices. Invariant: what a slice did is saved only by the holder of the job's newest grant."""

from typing import Any

from caisson.common.errors import Conflict, NotFound
from caisson.common.ids import new_id
from caisson.common.postgres import Connection, Pool, acquire
from caisson.memory.domain.jobs import Job, JobKind
from caisson.memory.domain.principals import Principal

_GRANTED_TO_ANOTHER = "the job was granted to another call meanwhile"


class PostgresJobs:
    """The domain's `Jobs`."""

    def __init__(self, pool: Pool, queries: Any, *, lease_s: float = 60) -> None:
        self._pool = pool
        self._sql = queries
        self._lease_s = float(lease_s)

    async def receipt(self, principal: Principal, id_: str) -> tuple[str, dict[str, Any]]:
        """Return id and receipt of a deletion of the principal's own; raise NotFound."""
        async with acquire(self._pool) as connection:
            row = await self._sql.read_receipt(connection, id=id_, tenant=principal.tenant, user=principal.user)
        if row is None:
            raise NotFound("no such receipt")
        return row["job_id"], row["receipt"]

    async def complete(self, principal: Principal, job_id: str) -> None:
        """Note that nothing is left of what a single deletion took."""
        async with acquire(self._pool) as connection:
            await self._sql.complete_receipt(connection, job=job_id, tenant=principal.tenant, user=principal.user)

    async def open(self, kind: JobKind, principal: Principal, state: dict[str, Any]) -> Job:
        """Begin a job and hold it."""
        async with acquire(self._pool) as connection:
            job_id = await create_job(self._sql, connection, kind, principal, state=state)
        return await self.resume(kind, principal, job_id)

    async def resume(self, kind: JobKind, principal: Principal, job_id: str) -> Job:
        """Hold a job of the principal's own to go on with it; a finished one comes back as it ended.

        Raises:
            NotFound: when the principal has no such job.
            Conflict: when another call is working on it.
        """
        own = {"job": job_id, "tenant": principal.tenant, "user": principal.user, "kind": kind}
        async with acquire(self._pool) as connection:
            row = await self._sql.lease_job(connection, **own, lease_s=self._lease_s)
            if row is not None:
                return Job(job_id=job_id, fence=row["fence"], state=row["state"], receipt=row["receipt"], done=False)
            known = await self._sql.read_job(connection, **own)
        if known is None:
            raise NotFound("no such job")
        if not known["done"]:
            raise Conflict("another call is working on this job")
        return Job(job_id=job_id, fence=0, state=known["state"], receipt=known["receipt"], done=True)

    async def save(self, job: Job) -> None:
        """Keep what a slice did and let go of the job; raise Conflict where it was granted to another meanwhile."""
        async with acquire(self._pool) as connection:
            saved = await self._sql.save_job(
                connection, job=job.job_id, fence=job.fence, state=job.state, receipt=job.receipt, done=job.done
            )
        if saved is None:
            raise Conflict(_GRANTED_TO_ANOTHER)

    async def release_all(self) -> None:
        """Let go of what a process that is gone was working on. Only where there is one replica."""
        async with acquire(self._pool) as connection:
            await self._sql.release_jobs(connection)


async def create_job(
    queries: Any,
    connection: Connection,
    kind: JobKind,
    principal: Principal,
    *,
    state: dict[str, Any] | None = None,
    receipt: dict[str, Any] | None = None,
) -> str:
    """Begin a job that `state` tells or, in the transaction that did it, keep its `receipt`; return the job's id."""
    job_id = new_id("job")
    await queries.create_job(
        connection,
        job=job_id,
        tenant=principal.tenant,
        user=principal.user,
        kind=kind,
        state=state or {},
        receipt=receipt or {},
        done=receipt is not None,
    )
    return job_id


async def note_job(queries: Any, connection: Connection, job: Job) -> None:
    """Keep how far a job is, in the transaction that got it there; raise Conflict where another call has it."""
    noted = await queries.note_job(connection, job=job.job_id, fence=job.fence, state=job.state, receipt=job.receipt)
    if noted is None:
        raise Conflict(_GRANTED_TO_ANOTHER)
