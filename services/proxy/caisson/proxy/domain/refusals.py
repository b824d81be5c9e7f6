"""Why a request was not carried out: a closed set of stable codes.

Invariant: a code is what the caller reads, what the counter is labelled with, and what the security event tells.
"""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """The stable codes."""

    MALFORMED_REQUEST = "malformed_request"
    HEAD_TOO_LARGE = "head_too_large"
    REQUEST_TIMEOUT = "request_timeout"
    HOST_AMBIGUOUS = "host_ambiguous"
    TARGET_REFUSED = "target_refused"
    CHANNEL_REFUSED = "channel_refused"
    CONTEXT_UNKNOWN = "context_unknown"
    CONTEXTS_UNAVAILABLE = "contexts_unavailable"
    REQUEST_ID_MISMATCH = "request_id_mismatch"
    UPSTREAM_UNKNOWN = "upstream_unknown"
    METHOD_DENIED = "method_denied"
    PATH_DENIED = "path_denied"
    DATASET_DENIED = "dataset_denied"
    TENANT_NOT_EXPRESSIBLE = "tenant_not_expressible"
    CREDENTIAL_MISSING = "credential_missing"
    CREDENTIAL_REFUSED = "credential_refused"
    BODY_TOO_LARGE = "body_too_large"
    BODY_NOT_REWRITABLE = "body_not_rewritable"
    ENCODED_ANSWER = "encoded_answer"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_CLOSED = "upstream_closed"
    UPSTREAM_MALFORMED = "upstream_malformed"


_STATUS = {
    Reason.MALFORMED_REQUEST: 400,
    Reason.HEAD_TOO_LARGE: 431,
    Reason.REQUEST_TIMEOUT: 408,
    Reason.HOST_AMBIGUOUS: 400,
    Reason.TARGET_REFUSED: 400,
    Reason.CONTEXTS_UNAVAILABLE: 503,
    Reason.BODY_TOO_LARGE: 413,
    Reason.BODY_NOT_REWRITABLE: 422,
    Reason.ENCODED_ANSWER: 502,
    Reason.UPSTREAM_UNREACHABLE: 502,
    Reason.UPSTREAM_TIMEOUT: 504,
    Reason.UPSTREAM_CLOSED: 502,
    Reason.UPSTREAM_MALFORMED: 502,
}
_DENIED_STATUS = 403

FAILURES = frozenset(
    {
        Reason.REQUEST_TIMEOUT,
        Reason.CONTEXTS_UNAVAILABLE,
        Reason.UPSTREAM_UNREACHABLE,
        Reason.UPSTREAM_TIMEOUT,
        Reason.UPSTREAM_CLOSED,
        Reason.UPSTREAM_MALFORMED,
    }
)
"""What went wrong without anybody asking for something forbidden: counted apart from the denials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The request is not carried out. `detail` is a sentence that the caller can act on; it holds no secret."""

    reason: Reason
    detail: str

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return _STATUS.get(self.reason, _DENIED_STATUS)

    @property
    def is_denial(self) -> bool:
        """Whether this is a security event."""
        return self.reason not in FAILURES
