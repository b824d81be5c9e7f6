"""A run's plan: what a caller may ask for, held against every limit before anything is stored."""

import json
import re
from dataclasses import dataclass
from typing import Literal

from caisson.common.errors import FieldError, InvalidInput, PayloadTooLarge
from caisson.common.ids import StepId, check_external_id, new_id
from caisson.common.leases import Limits
from caisson.common.messages import Message
from caisson.gateway.domain.limits import LimitExceeded, PartialLimits, Tenant, resolve

MAX_STEPS = 100
MAX_COMMAND_BYTES = 128 * 1024
MAX_ENV_VARIABLES = 100
MAX_ENV_BYTES = 64 * 1024
MAX_DATASETS = 100
MAX_UPSTREAMS = 32
MAX_METADATA_BYTES = 16 * 1024
MAX_CREDENTIAL_CHARS = 8 * 1024

RESERVED_NAMES = frozenset(
    {
        "TENANT_ID", "USER_ID", "RUN_ID", "SESSION_ID", "STEP_ID", "WORKSPACE", "HOME", "API_HOST", "REQUEST_ID",
        "DATASET_ID", "PATH", "LANG", "PWD", "SHELL", "USER", "LOGNAME", "BASH_ENV", "ENV", "IFS", "LD_PRELOAD",
        "LD_LIBRARY_PATH", "LD_AUDIT", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS",
    }
)  # fmt: skip
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_UPSTREAM_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_CREDENTIAL = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")


class BashRequest(Message):
    """A bash command; `timeout_s` overrides the run's `step_timeout_s`."""

    command: str
    timeout_s: float | None = None


class StepRequest(Message):
    """One step of a plan."""

    bash: BashRequest


class CredentialRequest(Message):
    """A credential for an upstream: exactly one of the forms."""

    bearer: str | None = None
    header: str | None = None


class RunRequest(Message):
    """The body of POST /v1/runs."""

    session_id: str | None = None
    steps: list[StepRequest]
    env: dict[str, str] = {}
    datasets: list[str] = []
    upstreams: dict[str, CredentialRequest] = {}
    workspace: Literal["run"] = "run"
    interactive: Literal[False] = False
    limits: PartialLimits | None = None
    on_failure: Literal["stop", "continue"] = "stop"
    on_lost: Literal["retry", "stop"] = "retry"
    metadata: dict[str, object] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step with its final time limit."""

    step_id: StepId
    command: str
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run that may be accepted. `credentials` are still in clear: the edge seals them before anything is stored."""

    steps: tuple[PlannedStep, ...]
    env: dict[str, str]
    datasets: tuple[str, ...]
    credentials: dict[str, tuple[Literal["bearer", "header"], str]]
    limits: Limits
    on_failure: Literal["stop", "continue"]
    on_lost: Literal["retry", "stop"]
    metadata: dict[str, object]


def plan(request: RunRequest, *, tenant: Tenant) -> Plan:
    """Hold a request against every limit.

    Raises:
        InvalidInput: or a subclass of it, naming field and limit.
    """
    limits = resolve(request.limits, tenant=tenant)
    _check_count("steps", len(request.steps), at_least=1, at_most=MAX_STEPS)
    _check_env(request.env)
    _check_count("datasets", len(request.datasets), at_most=MAX_DATASETS)
    for place, dataset in enumerate(request.datasets):
        check_external_id(dataset, field=f"datasets.{place}")
    _check_count("upstreams", len(request.upstreams), at_most=MAX_UPSTREAMS)
    return Plan(
        steps=tuple(_plan_step(step, place, limits, tenant) for place, step in enumerate(request.steps)),
        env=request.env,
        datasets=tuple(request.datasets),
        credentials={
            check_upstream(name, field="upstreams"): check_credential(wanted, field=f"upstreams.{name}")
            for name, wanted in request.upstreams.items()
        },
        limits=limits,
        on_failure=request.on_failure,
        on_lost=request.on_lost,
        metadata=check_metadata(request.metadata),
    )


def check_metadata(metadata: dict[str, object]) -> dict[str, object]:
    """Return the metadata if its JSON has at most 16 KiB."""
    size_bytes = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size_bytes > MAX_METADATA_BYTES:
        raise PayloadTooLarge(f"at most {MAX_METADATA_BYTES} bytes as JSON, not {size_bytes}", field="metadata")
    return metadata


def check_upstream(name: str, *, field: str) -> str:
    """Return an upstream's name: a small letter, then at most 62 of `a-z 0-9 -`."""
    if not _UPSTREAM_NAME.fullmatch(name):
        raise InvalidInput("an upstream's name is a small letter, then at most 62 of a-z 0-9 -", field=field)
    return name


def check_credential(wanted: CredentialRequest, *, field: str) -> tuple[Literal["bearer", "header"], str]:
    """Return (kind, value): exactly one form, printable ASCII, no line break; one trailing line end is trimmed."""
    given = [(kind, value) for kind, value in (("bearer", wanted.bearer), ("header", wanted.header)) if value]
    if len(given) != 1:
        raise InvalidInput("give exactly one of bearer, header, and not an empty one", field=field)
    kind, value = given[0]
    value = value.removesuffix("\n").removesuffix("\r")
    if len(value) > MAX_CREDENTIAL_CHARS:
        raise PayloadTooLarge(f"at most {MAX_CREDENTIAL_CHARS} characters", field=f"{field}.{kind}")
    if not _CREDENTIAL.fullmatch(value):
        raise InvalidInput("printable ASCII without line breaks", field=f"{field}.{kind}")
    return ("bearer" if kind == "bearer" else "header"), value


def _plan_step(step: StepRequest, place: int, limits: Limits, tenant: Tenant) -> PlannedStep:
    where = f"steps.{place}.bash"
    _check_command(step.bash.command, field=f"{where}.command")
    timeout_s = limits.step_timeout_s if step.bash.timeout_s is None else step.bash.timeout_s
    if not timeout_s > 0:
        raise InvalidInput("must be above zero", field=f"{where}.timeout_s")
    if timeout_s > tenant.ceilings.step_timeout_s:
        raise LimitExceeded(f"at most {tenant.ceilings.step_timeout_s}", field=f"{where}.timeout_s")
    return PlannedStep(step_id=StepId(new_id("stp")), command=step.bash.command, timeout_s=timeout_s)


def _check_command(command: str, *, field: str) -> None:
    if not command.strip():
        raise InvalidInput("must not be blank", field=field)
    size_bytes = len(command.encode())
    if size_bytes > MAX_COMMAND_BYTES:
        raise PayloadTooLarge(f"at most {MAX_COMMAND_BYTES} bytes, not {size_bytes}", field=field)


def _check_env(env: dict[str, str]) -> None:
    _check_count("env", len(env), at_most=MAX_ENV_VARIABLES)
    wrong = [name for name in env if not _ENV_NAME.fullmatch(name)]
    if wrong:
        told = tuple(FieldError(field=f"env.{name}", message="not a variable's name") for name in wrong)
        raise InvalidInput("env: a name is a letter or _, then at most 127 letters, digits, _", fields=told)
    reserved = sorted(RESERVED_NAMES & env.keys())
    if reserved:
        told = tuple(FieldError(field=f"env.{name}", message="is reserved") for name in reserved)
        raise InvalidInput(f"env: {', '.join(reserved)} cannot be set", fields=told)
    size_bytes = sum(len(name) + len(value.encode()) for name, value in env.items())
    if size_bytes > MAX_ENV_BYTES:
        raise PayloadTooLarge(f"env: at most {MAX_ENV_BYTES} bytes together, not {size_bytes}", field="env")


def _check_count(field: str, count: int, *, at_most: int, at_least: int = 0) -> None:
    if not at_least <= count <= at_most:
        raise InvalidInput(f"{at_least} to {at_most} of them, not {count}", field=field)
