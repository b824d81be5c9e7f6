"""The messages between workers and the ledger (`caisson.rpc.ledger.*`)."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from caisson.common.messages import Message, Told, ToldFacts
from caisson.common.outcome import Outcome, Output


class Limits(Message):
    """What a run may use. Every value is above zero; the gateway enforces the tenant's ceilings."""

    timeout_s: float = Field(default=600, gt=0)
    step_timeout_s: float = Field(default=60, gt=0)
    memory_mib: int = Field(default=512, gt=0)
    pids: int = Field(default=128, gt=0)
    disk_mib: int = Field(default=256, gt=0)
    cpus: float = Field(default=1.0, gt=0)
    output_kib: int = Field(default=256, gt=0)


class BashStep(Message):
    """One bash command of a run's plan; `timeout_s` is final (the step's own or the run's default)."""

    step_id: str
    index: int
    command: str
    timeout_s: float


class SecurityKind(StrEnum):
    """What was blocked, rewritten or refused."""

    COMMAND_BLOCKED = "command_blocked"
    PROXY_REWRITE = "proxy_rewrite"
    PROXY_DENIED = "proxy_denied"
    EGRESS_BLOCKED = "egress_blocked"
    STALE_FENCE = "stale_fence"


class SecurityEvent(Message):
    """One thing that a layer blocked or rewrote. `id` makes a repeated report count once.

    `snippet` has at most 200 characters with credential-shaped parts masked; `detail` holds flat, secret-free facts.
    """

    id: str
    kind: SecurityKind
    run_id: str
    step_id: str | None = None
    guard: Told | None = None
    reason: Told
    snippet: Told | None = Field(default=None, max_length=200)
    detail: ToldFacts = {}


class Grant(Message):
    """The right to work on a run: what to do, within what, and for how long (`lease_s`, by the ledger's clock).

    `steps` are those without a recorded result; `resumed_after` counts the recorded ones before them.
    `request_id` names the run's context at the proxy. `remaining_s` is what is left of the run's time limit.
    """

    tenant_id: str
    user_id: str
    session_id: str | None
    run_id: str
    fence: int
    attempt: int
    lease_s: float
    uid: int
    request_id: str
    limits: Limits
    remaining_s: float
    env: dict[str, str]
    datasets: list[str]
    on_failure: Literal["stop", "continue"]
    steps: list[BashStep]
    resumed_after: int
    workspace_lost: bool
    traceparent: str | None = None

    @property
    def size_bytes(self) -> int:
        """About how much of a message it takes: its commands and variables."""
        texts = (*(step.command for step in self.steps), *self.env, *self.env.values(), *self.datasets)
        return sum(len(text.encode()) for text in texts)


class Claim(Message):
    """A worker asks for at most `slots` runs; the last `reserve` of them only for tenants without a live lease.

    The reserve lets a tenant's first run start at once on workers that another tenant keeps busy.
    """

    worker_id: str
    slots: int = Field(gt=0)
    reserve: int = Field(default=0, ge=0)


class Grants(Message):
    """What the worker got, possibly nothing."""

    grants: list[Grant]


class Holding(Message):
    """A lease as the worker knows it: every write repeats it."""

    worker_id: str
    run_id: str
    fence: int


class Renew(Message):
    """A worker's heartbeat for all that it holds."""

    worker_id: str
    leases: list[Holding]


class Verdict(StrEnum):
    """What a worker must do with a run that it holds."""

    CONTINUE = "continue"
    CANCEL = "cancel"
    LOST = "lost"


class Renewed(Message):
    """The verdict for each run of the heartbeat."""

    verdicts: dict[str, Verdict]


class StartStep(Message):
    """A step is about to run."""

    holding: Holding
    step_id: str


class FinishRun(Message):
    """The run's end, as the worker saw it; the ledger derives the status from the recorded steps."""

    holding: Holding


class FinishStep(Message):
    """A step's result, and what happens next in the same transaction: another step starts, or the run ends."""

    holding: Holding
    step_id: str
    outcome: Outcome
    stdout: Output
    stderr: Output
    duration_ms: float
    security: list[SecurityEvent] = []
    start_next: str | None = None
    finish_run: bool = False


class Release(Message):
    """A draining worker gives the run back: it is claimable again at once."""

    holding: Holding


class RecordSecurity(Message):
    """The proxy reports what it denied or rewrote."""

    events: list[SecurityEvent]


class Done(Message):
    """The write is recorded. `verdict` tells of a cancel that came meanwhile."""

    verdict: Verdict = Verdict.CONTINUE


class OutputChunk(Message):
    """Live output on `caisson.out.step.chunk`: `offset` counts the stream's bytes before this text."""

    step_id: str
    stream: Literal["stdout", "stderr"]
    offset: int
    text: str
