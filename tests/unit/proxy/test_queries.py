"""The tenant in a query: one trusted pair, and every other byte as it was."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.proxy.domain.places import FOREIGN, NOTHING, TRUSTED, Found
from caisson.proxy.domain.queries import rewrite_query
from caisson.proxy.domain.spelling import Spellings, fold_query_key

PAIR = b"tenantId=acme"

CASES: tuple[tuple[str | None, str, Found, str], ...] = (
    (None, "tenantId=acme", NOTHING, "no query"),
    ("", "tenantId=acme", NOTHING, "an empty query"),
    ("a=1", "a=1&tenantId=acme", NOTHING, "appended"),
    ("tenantId=acme", "tenantId=acme", TRUSTED, "already right"),
    ("tenantId=", "tenantId=acme", TRUSTED, "empty names nobody"),
    ("tenantId", "tenantId=acme", TRUSTED, "a flag names nobody"),
    ("tenantId=b&x=1&tenantId=acme", "tenantId=acme&x=1", FOREIGN, "first wrong, last right"),
    ("tenantId=acme&x=1&tenantId=b", "tenantId=acme&x=1", FOREIGN, "first right, last wrong"),
    ("x=1&TENANTID=b&y=2", "x=1&tenantId=acme&y=2", FOREIGN, "another case"),
    ("tenant_id=b", "tenantId=acme", FOREIGN, "snake case"),
    ("tenant-id=b", "tenantId=acme", FOREIGN, "kebab case"),
    ("tenant.id=b", "tenantId=acme", FOREIGN, "PHP makes underscores of dots"),
    ("tenantId[]=b", "tenantId=acme", FOREIGN, "a list"),
    ("tenantId%5B%5D=b", "tenantId=acme", FOREIGN, "an encoded list"),
    ("tenantId[0][x]=b", "tenantId=acme", FOREIGN, "nested"),
    ("t%65nantId=b", "tenantId=acme", FOREIGN, "percent-encoded"),
    ("%2574enantId=b", "tenantId=acme", FOREIGN, "encoded twice"),
    ("%u0074enantId=b", "tenantId=acme", FOREIGN, "encoded as IIS does"),
    ("+tenantId=b", "tenantId=acme", FOREIGN, "a space before, which PHP drops"),
    ("tenantId%20=b", "tenantId=acme", FOREIGN, "a space behind"),
    ("tenantId%00x=b", "tenantId=acme", FOREIGN, "NUL ends a name in C"),
    ("%EF%BD%94enantId=b", "tenantId=acme", FOREIGN, "a full-width letter"),
    ("tenant%C4%B0d=b", "tenantId=acme", FOREIGN, "a capital that some locales make an i"),
    ("s=1;tenantId=b&x=2", "s=1&x=2&tenantId=acme", FOREIGN, "after a semicolon"),
    ("tenantId=b;x=1", "tenantId=acme&x=1", FOREIGN, "before a semicolon"),
    ("x=1;tenantId=b;y=2", "x=1;y=2&tenantId=acme", FOREIGN, "between semicolons"),
    ("tenantId=a%63me", "tenantId=acme", TRUSTED, "the trusted value, encoded"),
    ("filter[tenantId]=b", "filter[tenantId]=b&tenantId=acme", NOTHING, "another key"),
    ("xtenantId=b", "xtenantId=b&tenantId=acme", NOTHING, "another key that ends alike"),
    (
        "b=2&a=1&b=3&flag&sig=%E9%FF&s=1;2&q=a%20b",
        "b=2&a=1&b=3&flag&sig=%E9%FF&s=1;2&q=a%20b&tenantId=acme",
        NOTHING,
        "order, repeats, flags and invalid escapes stay",
    ),
    ("&&a=&=b&", "&&a=&=b&&tenantId=acme", NOTHING, "empty pairs stay"),
)


@pytest.mark.parametrize(("query", "expected", "found", "reason"), CASES, ids=[reason for *_, reason in CASES])
def test_a_query_is_rewritten(query: str | None, expected: str, found: Found, reason: str) -> None:
    raw = None if query is None else query.encode("latin-1")
    assert rewrite_query(raw, Spellings("tenantId"), PAIR, "acme") == (expected.encode("latin-1"), found)


def test_a_trusted_value_may_be_written_with_either_kind_of_space() -> None:
    for written in ("a+b", "a%2Bb"):
        assert rewrite_query(f"t={written}".encode(), Spellings("t"), b"t=a%2Bb", "a+b")[1] is TRUSTED
    for written in ("a+b", "a%20b"):
        assert rewrite_query(f"t={written}".encode(), Spellings("t"), b"t=a%20b", "a b")[1] is TRUSTED


spelled = st.sampled_from(
    [
        "tenantId",
        "TENANTID",
        "tenant_id",
        "tenant-id",
        "tenantId[]",
        "tenantId[0]",
        "%74enantId",
        "t%45nantid",
        "tenantId%5b%5d",
    ]
)
plain = st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="&;#"), max_size=12)
values = st.text(max_size=8).map(lambda value: quote(value.encode("utf-8", "replace"), safe=""))


@given(
    st.lists(st.one_of(plain, st.tuples(spelled, values).map("=".join)), max_size=8),
    st.sampled_from(["acme", "a b", "ü/&=+%"]),
)
def test_any_query_ends_with_one_trusted_pair_and_all_other_bytes(pieces: list[str], trusted: str) -> None:
    pair = f"tenantId={quote(trusted, safe='')}".encode()
    others = [piece.encode() for piece in pieces if fold_query_key(piece.encode().partition(b"=")[0]) != "tenantid"]
    query = "&".join(pieces).encode()

    rewritten, _ = rewrite_query(query, Spellings("tenantId"), pair, trusted)

    written = rewritten.split(b"&")
    assert [piece for piece in written if fold_query_key(piece.partition(b"=")[0]) == "tenantid"] == [pair]
    assert [piece for piece in written if piece is not pair and piece != pair] == (others if query else [])


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="#"), max_size=60))
def test_no_spelling_is_left_after_either_separator(query: str) -> None:
    rewritten, _ = rewrite_query(query.replace("x", "tenantId").encode(), Spellings("tenantId"), PAIR, "acme")

    keys = [part.partition(b"=")[0] for piece in rewritten.split(b"&") for part in piece.split(b";")]
    assert [fold_query_key(key) for key in keys].count("tenantid") == 1
    assert PAIR in rewritten.split(b"&")
