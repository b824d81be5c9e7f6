"""Which questions are worth asking. Invariant: a query without content is refused and never means everything."""

from caisson.common.errors import EmptyQuery, InvalidInput
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.terms import query_terms

MAX_QUERY_CHARS = 8_000


def check_query(query: str) -> None:
    """Accept a query that has at least one term.

    Raises:
        EmptyQuery: blank, invisible, punctuation, emoji or stop words only.
        InvalidInput: too long, naming the limit.
    """
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(f"query has {len(query)} characters; the limit is {MAX_QUERY_CHARS}", field="query")
    if not query_terms(query):
        raise EmptyQuery("query has no words to search for", field="query")


def searched_layers(layers: frozenset[Layer], session_id: str | None) -> frozenset[Layer]:
    """Return the layers that a recall reads; empty means all, of which sessions' memories still need their session.

    Raises:
        InvalidInput: when only the session layer is asked for and no session is named.
    """
    if session_id is not None:
        return layers
    if layers == {Layer.SESSION}:
        raise InvalidInput("session_id must be given to search the layer session", field="session_id")
    return layers - {Layer.SESSION}


def without_sessions(layers: frozenset[Layer]) -> frozenset[Layer]:
    """Return the same layers but for the sessions'."""
    return (layers or frozenset(Layer)) - {Layer.SESSION}
