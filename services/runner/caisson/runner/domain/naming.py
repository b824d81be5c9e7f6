"""The ids that a grant's logs and subjects carry."""

from dataclasses import replace

from caisson.common.ids import Ids, RunId, SessionId, StepId, TenantId, UserId
from caisson.common.leases import Grant


def run_ids(grant: Grant) -> Ids:
    """Return the ids that name a run."""
    return Ids(
        tenant=TenantId(grant.tenant_id),
        user=UserId(grant.user_id),
        session=SessionId(grant.session_id) if grant.session_id else None,
        run=RunId(grant.run_id),
    )


def step_ids(grant: Grant, step_id: str) -> Ids:
    """Return the ids that name a step."""
    return replace(run_ids(grant), step=StepId(step_id))
