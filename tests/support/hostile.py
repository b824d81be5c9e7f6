"""Requests that nobody sends on purpose, for every operation of the API's own description."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

NASTY_TEXT = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "a\x00b",
        "\ud83d",
        "\ude00\ud83d",
        "😀" * 50,
        "\u202e\u2066",
        "e\u0301",
        "../../etc/passwd",
        "'; DROP TABLE ledger.runs; --",
        "%00%ff",
        "{{7*7}}${7*7}",
        "x" * 300,
        "run_" + "0" * 26,
        "NaN",
        "1e309",
        "-1",
        "9" * 40,
        "0001-01-01T00:00:00+23:59",
        "AAAA",
    ]
)
NASTY_NUMBER: st.SearchStrategy[float] = st.sampled_from(
    [0, -1, -0.0, 1.5, 10**15, 10**16, 2**63, 10**400, 1e308, 5e-324, float("inf"), float("nan")]
)
NASTY: st.SearchStrategy[Any] = (
    NASTY_TEXT
    | NASTY_NUMBER
    | st.none()
    | st.booleans()
    | st.sampled_from([[], {}, [[]], [None], {"": None}, [{}] * 3, {"bash": {"command": "x"}}])
    | st.text(max_size=20)
    | st.integers()
)
JSON = {b"Content-Type": b"application/json"}
Draw = Callable[[st.SearchStrategy[Any]], Any]
VALID: dict[str, dict[str, Any]] = {
    "POST /v1/runs": {
        "steps": [{"bash": {"command": "true", "timeout_s": 5}}],
        "env": {"REGION": "eu"},
        "datasets": ["ds_1"],
        "upstreams": {"metrics": {"bearer": "tok"}},
        "limits": {"pids": 16, "cpus": 0.5},
        "on_failure": "stop",
        "metadata": {"ticket": "T-17"},
        "session_id": None,
    },
    "POST /v1/exec": {"command": "true", "env": {}, "timeout_s": 0},
    "POST /v1/sessions": {"metadata": {"topic": "bills"}},
    "POST /v1/keys": {"name": "app", "tenant_id": "acme"},
    "PUT /v1/tenants/{tenant_id}": {"max_concurrency": 3, "limits": {"pids": 16}, "ceilings": {"pids": 64}},
    "PUT /v1/tenants/{tenant_id}/credentials/{upstream}": {"bearer": "tok"},
    "POST /v1/memories": {
        "text": "the shed is green",
        "layer": "semantic",
        "subject": "shed",
        "attribute": "colour",
        "importance": 0.5,
        "confidence": 0.5,
        "confirmations": 1,
        "outcome": "done",
        "external_id": "shed-1",
        "scopes": ["tenant"],
        "valid_from": "2026-01-01T00:00:00Z",
        "valid_to": "2098-01-01T00:00:00Z",
        "expires_at": "2099-01-01T00:00:00Z",
        "tags": ["a"],
        "metadata": {"n": 1},
        "provenance": {"kind": "person", "source": "x"},
    },
    "PATCH /v1/memories/{memory_id}": {
        "text": "the shed is red",
        "importance": 0.1,
        "confidence": 0.2,
        "tags": ["b"],
        "metadata": {"n": 2},
        "valid_to": "2098-01-01T00:00:00Z",
        "expires_at": "2099-01-01T00:00:00Z",
        "expected_version": 1,
        "status": "active",
    },
    "POST /v1/memories/search": {
        "query": "shed",
        "k": 3,
        "layers": ["semantic"],
        "as_of": "2026-01-01T00:00:00Z",
        "on_degraded": "serve",
    },
    "POST /v1/memories/context": {"query": "shed", "token_budget": 50, "session_id": "ses_1"},
    "POST /v1/memories/feedback": {"retrieval_id": "ret_1", "reward": 0.5},
    "POST /v1/memories/consolidate": {"dry_run": True},
    "POST /v1/memories/distil": {"candidates": ["the shed is green"], "target": 3},
}


@dataclass(frozen=True, kw_only=True)
class Hostile:
    """One request."""

    method: str
    target: str
    headers: dict[bytes, bytes]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation of the API, as its description tells it."""

    method: str
    path: str
    query: tuple[str, ...]
    path_names: tuple[str, ...]

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"


def operations(document: dict[str, Any]) -> list[Operation]:
    """Read the operations of an OpenAPI document."""

    def names(operation: dict[str, Any], place: str) -> tuple[str, ...]:
        return tuple(item["name"] for item in operation.get("parameters", ()) if item["in"] == place)

    return [
        Operation(
            method=method.upper(), path=path, query=names(operation, "query"), path_names=names(operation, "path")
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def hostile_requests(operation: Operation, known: dict[str, str]) -> st.SearchStrategy[Hostile]:
    """Return requests to one operation, each hostile in some of its parts and fine in the others.

    `known` are ids of objects that exist, by the name of their parameter.
    """
    valid = VALID.get(operation.name)

    @st.composite
    def build(draw: Draw) -> Hostile:
        parts = draw(st.sets(st.sampled_from(["path", "query", "headers", "body"]), min_size=1))
        odd = NASTY_TEXT | st.text(max_size=9)
        target = operation.path
        for name in operation.path_names:
            value = draw(odd) if "path" in parts else known[name]
            target = target.replace(f"{{{name}}}", quote(_bytes(value), safe=""))
        if "query" in parts and operation.query:
            chosen = draw(st.dictionaries(st.sampled_from(operation.query), odd, max_size=2))
            target += "?" + urlencode({name: _bytes(value) for name, value in chosen.items()})
        fine = b"" if valid is None else json.dumps(valid).encode()
        return Hostile(
            method=operation.method,
            target=target,
            headers=draw(_headers()) if "headers" in parts else JSON,
            body=draw(_bodies(valid)) if "body" in parts else fine,
        )

    return build()


def _headers() -> st.SearchStrategy[dict[bytes, bytes]]:
    kinds = [*JSON.values(), b"text/plain", b"application/json; charset=utf-16", b"x", b""]
    names = [
        b"Idempotency-Key",
        b"Last-Event-ID",
        b"Caisson-Tenant",
        b"Caisson-User",
        b"Caisson-Scopes",
        b"Range",
        b"Accept",
    ]
    value = st.binary(max_size=20) | NASTY_TEXT.map(_bytes)
    sendable = value.map(lambda raw: raw.translate(None, bytes(range(32)) + b"\x7f").strip())
    named = st.dictionaries(st.sampled_from(names), sendable, max_size=2)
    return st.builds(lambda kind, given: {b"Content-Type": kind, **given}, st.sampled_from(kinds), named)


def _bodies(valid: dict[str, Any] | None) -> st.SearchStrategy[bytes]:
    anything = st.binary(max_size=40) | NASTY.map(_encode)
    return anything if valid is None else st.one_of(*[mutated(valid).map(_encode)] * 4, anything)


@st.composite
def mutated(draw: Draw, valid: dict[str, Any]) -> Any:
    """Return a valid body with one or two things changed somewhere."""
    body = deepcopy(valid)
    for _ in range(draw(st.integers(1, 2))):
        where: Any = body
        while True:
            places = list(where) if isinstance(where, dict) else list(range(len(where)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            if isinstance(where[place], dict | list) and where[place] and draw(st.booleans()):
                where = where[place]
                continue
            where[place] = draw(NASTY)
            break
        if isinstance(where, dict) and draw(st.integers(0, 3)) == 0:
            where[draw(NASTY_TEXT)] = draw(NASTY)
    return body


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
