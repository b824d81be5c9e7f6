"""The envelope of an event: the ids again, so that a consumer can refuse a message on the wrong subject."""

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from caisson.common.errors import InvalidInput
from caisson.common.ids import Ids, RunId, SessionId, StepId, TenantId, UserId
from caisson.common.messages import Message
from caisson.common.subjects import Subject, parse


class Envelope(Message):
    """A message with its ids. `id` is unique per fact and attempt; `type` is `noun.verb`."""

    id: str
    type: str
    tenant_id: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    step_id: str | None = None
    occurred_at: datetime
    data: dict[str, Any]

    @property
    def ids(self) -> Ids:
        """The ids as they stand in the subject."""
        return Ids(
            tenant=TenantId(self.tenant_id) if self.tenant_id else None,
            user=UserId(self.user_id) if self.user_id else None,
            session=SessionId(self.session_id) if self.session_id else None,
            run=RunId(self.run_id) if self.run_id else None,
            step=StepId(self.step_id) if self.step_id else None,
        )


def open_envelope(subject: str, body: bytes) -> tuple[Subject, Envelope]:
    """Parse a message and hold its envelope against its subject.

    Raises:
        InvalidInput: when either does not parse, or when they tell different ids or types.
    """
    parsed = parse(subject)
    try:
        envelope = Envelope.model_validate_json(body)
    except ValidationError as error:
        raise InvalidInput(f"not an envelope: {error.error_count()} errors", field="body") from error
    if envelope.ids != parsed.ids or envelope.type != f"{parsed.noun}.{parsed.verb}":
        raise InvalidInput(f"envelope of {envelope.type} does not belong on {parsed.template}", field="subject")
    return parsed, envelope
