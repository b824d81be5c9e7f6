"""What is asked over the bus of memories as a whole: consolidating, distilling, usage, reconciling."""

from typing import Any

from pydantic import Field

from caisson.common.memories import Called
from caisson.common.messages import Message, Text


class Consolidation(Message):
    """Turn several episodes into one semantic memory; `dry_run` only shows the plan.

    `due` takes no more than the periodic work would take now: of owners with many episodes, those long unused.
    """

    dry_run: bool = False
    due: bool = False


class Consolidate(Consolidation, Called):
    """Consolidate what the caller may see."""


class ConsolidationPlan(Message):
    """Groups of episodes, and what each becomes."""

    groups: list[dict[str, Any]]
    created: list[str]
    applied: bool


class Distillation(Message):
    """Distil many candidates to at most `target` memories, in resumable stages."""

    candidates: list[Text] = Field(max_length=10_000)
    target: int = Field(default=50, ge=1, le=1_000)
    resume: Text | None = None


class Distil(Distillation, Called):
    """Distil for the caller."""


class Distilled(Message):
    """The selection and a report of each stage; stages without a model endpoint are told as skipped."""

    job_id: str
    selected: list[str]
    stages: list[dict[str, Any]]
    complete: bool


class UsageOf(Called):
    """Ask for usage."""


class Usage(Message):
    """Rows and bytes against their quotas, for the user and for the tenant."""

    user_rows: int
    user_rows_limit: int
    user_bytes: int
    user_bytes_limit: int
    tenant_rows: int
    tenant_rows_limit: int
    tenant_bytes: int
    tenant_bytes_limit: int


class Reconcile(Called):
    """Compare SQL and index for the caller's tenant and mend the index."""


class Reconciled(Message):
    """What was found and mended."""

    checked: int
    missing: int
    orphaned: int
    stale: int
