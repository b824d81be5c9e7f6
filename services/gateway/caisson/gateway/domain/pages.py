"""Cursors of paginated lists: the last id of a page, opaque to the caller."""

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

from caisson.common.errors import InvalidInput

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_MAX_DIGITS = 18

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """At most `limit` items, older than `before`."""

    limit: int
    before: str | None

    @property
    def number(self) -> int:
        """The place to go on before, of lists that number their items.

        Raises:
            InvalidInput: the cursor is of another list.
        """
        if self.before is None or not self.before.isdecimal() or len(self.before) > _MAX_DIGITS:
            raise InvalidInput("not a cursor of this list", field="cursor")
        return int(self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[ItemT]):
    """Items, newest first, and the cursor of the next page where there is one."""

    items: list[ItemT]
    next_cursor: str | None


def request_page(limit: int | None, cursor: str | None, *, kind: str = "") -> PageRequest:
    """Check a caller's wish. A list that names a `kind` takes cursors of no other list.

    Raises:
        InvalidInput: naming `limit` or `cursor`.
    """
    size = DEFAULT_LIMIT if limit is None else limit
    if not 1 <= size <= MAX_LIMIT:
        raise InvalidInput(f"1 to {MAX_LIMIT}", field="limit")
    return PageRequest(limit=size, before=None if cursor is None else _decode(cursor, kind))


def paginate(found: list[ItemT], ids: list[str], request: PageRequest) -> Page[ItemT]:
    """Make a page of what was found with `limit + 1`; `ids` are the items' ids, in the same order."""
    if len(found) <= request.limit:
        return Page(items=found, next_cursor=None)
    return Page(items=found[: request.limit], next_cursor=cursor_after(ids[request.limit - 1]))


def cursor_after(last: str, *, kind: str = "") -> str:
    """Return the cursor of what follows an id."""
    return base64.urlsafe_b64encode(f"{kind}{last}".encode()).decode().rstrip("=")


def _decode(cursor: str, kind: str) -> str:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    if not text or "\x00" in text:
        raise InvalidInput("not a cursor of this API", field="cursor")
    if not text.startswith(kind):
        raise InvalidInput("not a cursor of this list", field="cursor")
    return text.removeprefix(kind)
