"""The one tree of errors. Each class has a stable code; edges map codes to HTTP and RPC, the domain knows neither.

CaissonError
├── InvalidInput          invalid_input
│   ├── InvalidId         invalid_id
│   ├── PayloadTooLarge   payload_too_large
│   └── EmptyQuery        empty_query
├── NotFound              not_found
├── Conflict              conflict
│   ├── LeaseLost         lease_lost
│   │   └── LateResult    late_result
│   └── RunFinished       run_finished
├── Denied                denied
│   └── TenantMismatch    tenant_mismatch
├── Unauthenticated       unauthenticated
├── Exhausted             exhausted
│   ├── UidRangeExhausted uid_range_exhausted
│   └── QuotaExceeded     quota_exceeded
├── Unavailable           unavailable         (retryable)
│   └── TimedOut          timed_out           (retryable)
├── Misconfigured         misconfigured
└── Internal              internal
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One refused field: its dotted path and what would have been accepted."""

    field: str
    message: str


def not_valid(count: int) -> str:
    """Say how many fields of an input are refused."""
    return "1 field is not valid" if count == 1 else f"{count} fields are not valid"


class CaissonError(Exception):
    """A failure with a stable code. `detail` is safe to show to the caller; it never holds a secret."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str, *, field: str | None = None, fields: tuple[FieldError, ...] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fields = fields or ((FieldError(field=field, message=detail),) if field else ())


class InvalidInput(CaissonError):
    """The caller's input breaks a rule; the fields say which."""

    code = "invalid_input"


class InvalidId(InvalidInput):
    """An id is empty, too long, or not printable."""

    code = "invalid_id"


class PayloadTooLarge(InvalidInput):
    """A body or a value exceeds a stated size."""

    code = "payload_too_large"


class EmptyQuery(InvalidInput):
    """A query says nothing that could be searched for; it never means everything."""

    code = "empty_query"


class NotFound(CaissonError):
    """The object does not exist, or the caller may not know that it does."""

    code = "not_found"


class Conflict(CaissonError):
    """The object's state does not permit the change."""

    code = "conflict"


class LeaseLost(Conflict):
    """The worker no longer holds the run: another fence, an expired lease, or a finished run."""

    code = "lease_lost"


class LateResult(LeaseLost):
    """The run ended otherwise before this result came; it is kept and changes nothing."""

    code = "late_result"


class RunFinished(Conflict):
    """The run is finished and takes no more changes."""

    code = "run_finished"


class Denied(CaissonError):
    """The caller is known and may not do this."""

    code = "denied"


class TenantMismatch(Denied):
    """A tenant key was used for another tenant."""

    code = "tenant_mismatch"


class Unauthenticated(CaissonError):
    """No valid API key."""

    code = "unauthenticated"


class Exhausted(CaissonError):
    """A finite resource is used up."""

    code = "exhausted"


class UidRangeExhausted(Exhausted):
    """Every uid from 10000 to 60000 belongs to a tenant; a uid is never shared."""

    code = "uid_range_exhausted"


class QuotaExceeded(Exhausted):
    """A user or a tenant holds as much as it may; the detail names limit and usage."""

    code = "quota_exceeded"


class Unavailable(CaissonError):
    """A peer or a server cannot be reached now."""

    code = "unavailable"
    retryable = True


class TimedOut(Unavailable):
    """No answer in time: the outcome at the other side is unknown."""

    code = "timed_out"


class Misconfigured(CaissonError):
    """The process must not start: a setting, a declaration or a host mechanism is not as required."""

    code = "misconfigured"


class Internal(CaissonError):
    """A bug at the other side; its log has the cause."""

    code = "internal"


def all_errors() -> dict[str, type[CaissonError]]:
    """Return every class of the tree by its code."""
    found: dict[str, type[CaissonError]] = {}
    pending: list[type[CaissonError]] = [CaissonError]
    while pending:
        current = pending.pop()
        found[current.code] = current
        pending.extend(current.__subclasses__())
    return found
