"""Replies on the bus: what was asked for, or a typed error that is rebuilt from its code, never from a class path.

Invariant: an error names what is not valid without repeating it.
"""

from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from caisson.common.errors import CaissonError, FieldError, Internal, all_errors
from caisson.common.messages import Message

ReplyT = TypeVar("ReplyT", bound=Message)

_MAX_FIELDS = 50
_MAX_FIELD_CHARS = 256


class ErrorReply(Message):
    """A typed error on the wire."""

    code: str
    detail: str
    fields: list[dict[str, str]] = []

    @classmethod
    def of(cls, error: CaissonError) -> "ErrorReply":
        """Describe an error."""
        fields = [{"field": item.field, "message": item.message} for item in error.fields]
        return cls(code=error.code, detail=error.detail, fields=fields)

    def rebuild(self) -> CaissonError:
        """Return the error that the other side raised."""
        kind = all_errors().get(self.code, Internal)
        fields = tuple(FieldError(field=item["field"], message=item["message"]) for item in self.fields)
        return kind(self.detail, fields=fields)


@cache
def _reply_model(model: type[Message]) -> type[BaseModel]:
    config = ConfigDict(frozen=True, extra="forbid")
    namespace = {
        "__annotations__": {"ok": model | None, "error": ErrorReply | None},
        "ok": None,
        "error": None,
        "model_config": config,
        "__module__": __name__,
    }
    return type(f"Reply{model.__name__}", (BaseModel,), namespace)


def answered(reply: Message) -> bytes:
    """Return a reply as it is sent."""
    return b'{"ok":' + reply.model_dump_json().encode() + b"}"


def refused(error: CaissonError) -> bytes:
    """Return an error as it is sent."""
    return b'{"error":' + ErrorReply.of(error).model_dump_json().encode() + b"}"


def open_reply(body: bytes, model: type[ReplyT]) -> ReplyT:
    """Return the reply, or raise the error that the other side raised; Internal for what is neither."""
    try:
        reply: Any = _reply_model(model).model_validate_json(body)
    except ValidationError as error:
        raise Internal("the reply is not of the agreed form") from error
    if reply.error is not None:
        raise reply.error.rebuild()
    if not isinstance(reply.ok, model):
        raise Internal("the reply is empty")
    return reply.ok


def invalid_fields(error: ValidationError) -> tuple[FieldError, ...]:
    """Name what is not valid, without repeating it."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_FIELDS]
    return tuple(
        FieldError(field=".".join(map(str, item["loc"]))[:_MAX_FIELD_CHARS] or "body", message=item["msg"])
        for item in found
    )
