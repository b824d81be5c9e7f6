"""The header `Caisson-Scopes`: names that the product chose, between commas; any name can stand in quotes.

Source: lists and quoted strings of RFC 9110, sections 5.6.1 and 5.6.4. A quote inside a bare name stands for itself.
"""

import re
from typing import Final

from caisson.common.errors import InvalidInput
from caisson.common.ids import check_external_id

HEADER: Final = "Caisson-Scopes"
MAX_SCOPES: Final = 64

_NEXT = re.compile(r'[ \t]*+(?:"((?:[^"\\]|\\.)*+)"[ \t]*+|(?!")([^,]*+))(,|$)')
_ESCAPED = re.compile(r"\\(.)")


def read_scopes(given: str) -> list[str]:
    r"""Return the scopes of a header: `team:a, "on \"call\", nights"` names two.

    Raises:
        InvalidInput: when one is empty, too long or not printable, when a quote does not end, or there are too many.
    """
    scopes, at, more = [], 0, ","
    while more:
        found = _NEXT.match(given, at)
        if found is None:
            raise InvalidInput("a name that begins with a quote must end with one, and a comma follows", field=HEADER)
        quoted, bare, more = found.groups()
        scopes.append(bare.strip(" \t") if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = found.end()
    if len(scopes) > MAX_SCOPES:
        raise InvalidInput(f"names {len(scopes)} scopes; the limit is {MAX_SCOPES}", field=HEADER)
    return [check_external_id(scope, field=HEADER) for scope in scopes]
