"""What the engines store beside the vectors. Invariant: no text and no null; a time without end is the last one.

An open end is a time of its own because a null would need an optional condition, and optional conditions get lost.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from caisson.common.ids import TenantId
from caisson.memory.domain.indexing import Point

DENSE = "dense"
LEXICAL = "lexical"
LAYOUT = 1

_OPEN_END = datetime.max.replace(tzinfo=UTC)


class Field(StrEnum):
    """The payload's fields."""

    TENANT = "tenant"
    ACCESS = "access"
    LAYER = "layer"
    VALID_FROM = "valid_from"
    VALID_TO = "valid_to"
    EXPIRES_AT = "expires_at"
    MEMORY = "memory"
    VERSION = "version"


KEYWORDS = (Field.ACCESS, Field.LAYER, Field.MEMORY)
TIMES = (Field.VALID_FROM, Field.VALID_TO, Field.EXPIRES_AT)


def payload_of(point: Point) -> dict[str, Any]:
    """Return what is stored beside a point's vectors."""
    return {
        Field.TENANT.value: point.tenant,
        Field.ACCESS.value: sorted(access(point.tenant, scope) for scope in point.scopes),
        Field.LAYER.value: point.layer.value,
        Field.VALID_FROM.value: timestamp(point.valid_from),
        Field.VALID_TO.value: timestamp(point.valid_to or _OPEN_END),
        Field.EXPIRES_AT.value: timestamp(point.expires_at or _OPEN_END),
        Field.MEMORY.value: point.memory_id,
        Field.VERSION.value: point.version,
    }


def access(tenant: TenantId, scope: str) -> str:
    """Return a scope of a tenant as one value, which no other pair has.

    One condition on it is three times as fast as one on the tenant and one on the scope.
    """
    return f"{len(tenant)}:{tenant}:{scope}"


def timestamp(at: datetime) -> str:
    """Return an aware time in UTC, to the microsecond, as RFC 3339 has it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
