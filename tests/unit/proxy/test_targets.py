"""The path that policy reads is the path on the wire, and nobody can read another out of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.proxy.domain.refusals import Refuse
from caisson.proxy.domain.targets import Target, quote_segment, read_path, split_target

REFUSED = (
    ("/m/..", "a dot segment"),
    ("/m/./x", "a dot segment"),
    ("/m/%2e%2e/x", "encoded dots"),
    ("/m/.%2E/x", "half-encoded dots"),
    ("/m/.../x", "dots that Windows drops"),
    ("/m/..%20/x", "a space that Windows drops"),
    ("/m/%252e%252e/x", "encoded twice"),
    ("/m/%25%32%65/x", "encoded twice, another way"),
    ("/m/a%2fb", "an encoded slash"),
    ("/m/a%5cb", "an encoded backslash"),
    ("/m/a\\b", "a backslash"),
    ("/m/a%00b", "NUL"),
    ("/m/a%0db", "a control character"),
    ("/m//x", "an empty segment"),
    ("//m/x", "an empty first segment"),
    ("/m/..;/x", "a path parameter after dots"),
    ("/m/tenants;a=1/x", "a path parameter"),
    ("/m/%zz", "an invalid escape"),
    ("/m/%2", "half an escape"),
    ("/m/%c0%ae%c0%ae/x", "overlong dots"),
    ("/m/%ef%bc%8f", "a full-width slash"),
    ("/m/%e2%80%a5/x", "a two-dot leader"),
    ("/m/%ff", "bytes that are no UTF-8"),
)

CANONICAL = (
    ("/m", "/", "the upstream alone"),
    ("/m/", "/", "with a slash"),
    ("/m/files/v1%2e2", "/files/v1.2", "an encoded dot in a name is only a dot"),
    ("/m/%74enants/x", "/tenants/x", "an encoded letter is the letter"),
    ("/m/a%20b", "/a%20b", "a space stays encoded"),
    ("/m/a%3Bb", "/a%3Bb", "an encoded semicolon is part of a name"),
    ("/m/100%25", "/100%25", "a percent sign"),
    ("/m/a:b@c,d$e!f'(g)*+~=&", "/a:b@c,d$e!f'(g)*+~=&", "what may stand as it is"),
    ('/m/"{x}|^', "/%22%7Bx%7D%7C%5E", "what may not is encoded"),
    ("/m/%c3%a4", "/%C3%A4", "one spelling of an escape"),
    ("/m/x/", "/x/", "a trailing slash counts"),
)


@pytest.mark.parametrize(("raw", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_an_ambiguous_path_is_refused(raw: str, reason: str) -> None:
    assert isinstance(read_path(raw.encode()), Refuse)


@pytest.mark.parametrize(("raw", "path", "reason"), CANONICAL, ids=[reason for *_, reason in CANONICAL])
def test_a_legal_path_has_one_form(raw: str, path: str, reason: str) -> None:
    assert read_path(raw.encode()) == Target("m", path.encode())


@pytest.mark.parametrize("raw", ["http://a/b", "*", "a:443", "", "m/x", "/m/x#y", "/m?a#b"])
def test_only_the_origin_form_without_a_fragment_is_taken(raw: str) -> None:
    assert isinstance(split_target(raw.encode()), Refuse)


def test_the_query_is_split_off_at_the_first_question_mark() -> None:
    assert split_target(b"/m/x?a=/../?b") == (b"/m/x", b"a=/../?b")
    assert split_target(b"/m/x?") == (b"/m/x", b"")
    assert split_target(b"/m/x") == (b"/m/x", None)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="#?"), max_size=40))
def test_a_canonical_path_is_its_own_canonical_form(rest: str) -> None:
    first = read_path(b"/m/" + rest.encode())
    if isinstance(first, Target):
        assert read_path(b"/m" + first.path) == first


@given(st.text(min_size=1, max_size=20))
def test_a_value_becomes_one_segment_or_none(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    segment = quote_segment(value)
    if segment is not None:
        assert read_path(b"/m/" + segment + b"/x") == Target("m", b"/" + segment + b"/x")
