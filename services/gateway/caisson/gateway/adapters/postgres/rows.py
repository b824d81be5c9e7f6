"""Rows of the ledger as domain records."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from caisson.common.contexts import RunContext
from caisson.common.ids import RunId, SessionId, TenantId, UserId
from caisson.common.leases import Limits
from caisson.gateway.domain.leasing import context_credentials
from caisson.gateway.domain.limits import DEFAULT_CEILINGS, DEFAULT_LIMITS, PartialLimits, Tenant, merge
from caisson.gateway.domain.runs import RunRecord, RunStatus, StepRecord

Row = Mapping[str, Any]


def tenant_of(row: Row) -> Tenant:
    """Read a tenant; what its settings leave out takes the system's defaults."""
    return Tenant(
        tenant_id=row["tenant_id"],
        uid=row["uid"],
        max_concurrency=row["max_concurrency"],
        max_attempts=row["max_attempts"],
        retention_days=row["retention_days"],
        limits=merge(DEFAULT_LIMITS, PartialLimits.model_validate(row["limits"])),
        ceilings=merge(DEFAULT_CEILINGS, PartialLimits.model_validate(row["ceilings"])),
    )


def step_of(step: Row) -> StepRecord:
    """Read a step from a run's aggregated ones, whose times are text; a list's steps have no output."""
    return StepRecord(
        step_id=step["step_id"],
        index=step["index"],
        kind=step["kind"],
        status=step["status"],
        outcome=step["outcome"],
        stdout=step.get("stdout"),
        stderr=step.get("stderr"),
        started_at=_moment(step["started_at"]),
        finished_at=_moment(step["finished_at"]),
        duration_ms=step["duration_ms"],
    )


def run_of(row: Row) -> RunRecord:
    """Read a run with its steps."""
    return RunRecord(
        run_id=RunId(row["run_id"]),
        session_id=SessionId(row["session_id"]) if row["session_id"] else None,
        tenant_id=TenantId(row["tenant_id"]),
        user_id=UserId(row["user_id"]),
        status=RunStatus(row["status"]),
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        attempt=row["attempt"],
        version=row["version"],
        error=row["error"],
        metadata=row["metadata"],
        steps=tuple(step_of(step) for step in row["steps"]),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def context_of(row: Row, *, lease_s: float) -> RunContext:
    """Read the proxy's context of a leased run."""
    plan = row["plan"]
    return RunContext(
        request_id=row["request_id"],
        tenant_id=row["tenant_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        run_id=row["run_id"],
        fence=row["fence"],
        ttl_s=lease_s,
        datasets=plan["datasets"],
        credentials=context_credentials(plan["sealed"], row["credentials"]),
        traceparent=row["traceparent"],
    )


def limits_of(plan: Row) -> Limits:
    """Read the limits of a stored plan."""
    return Limits.model_validate(plan["limits"])
