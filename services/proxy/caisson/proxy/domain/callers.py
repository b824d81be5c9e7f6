"""Who is calling: a run as the proxy knows it now, and what was prepared for its requests.

Invariant: what was prepared from another tenant, other datasets or other credentials is never used.
"""

from caisson.common.contexts import RunContext
from caisson.common.ids import Ids, RunId, SessionId, TenantId, UserId
from caisson.proxy.domain.policies import Policies
from caisson.proxy.domain.preparation import Prepared
from caisson.proxy.domain.routes import Route


class Caller:
    """A run with a context. The same object is renewed or ended in place, so that running exchanges see it.

    `deadline` is on this process's monotonic clock.
    """

    __slots__ = ("context", "deadline", "ids", "prepared", "revision", "routed_by", "routes")

    def __init__(self, context: RunContext, *, revision: int, deadline: float) -> None:
        self.context = context
        self.prepared: dict[str, Prepared] = {}
        self.routes: dict[tuple[bytes, bytes], Route] = {}
        self.routed_by: Policies = {}
        self.renew(context, revision=revision, deadline=deadline)

    def renew(self, context: RunContext, *, revision: int, deadline: float) -> None:
        """Take a newer value of the same context."""
        if self.prepared and context != self.context:
            self.prepared = {}
            self.routes = {}
        self.context = context
        self.revision = revision
        self.deadline = deadline
        self.ids = Ids(
            tenant=TenantId(context.tenant_id),
            user=UserId(context.user_id),
            session=SessionId(context.session_id) if context.session_id else None,
            run=RunId(context.run_id),
        )

    def end(self) -> None:
        """Revoke it: no request of it is carried any more."""
        self.deadline = float("-inf")
