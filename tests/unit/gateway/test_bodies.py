"""What passes the edge can be stored by PostgreSQL and sent as UTF-8; everything else is a typed refusal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.common.errors import InvalidInput
from caisson.gateway.api.bodies import MAX_DEPTH, MAX_VALUES, NotJson, parse

ACCEPTED = [
    (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}, "a surrogate pair is an emoji"),
    ('{"a":"😀"}'.encode(), {"a": "😀"}, "and so is itself"),
    (b'{"a":1e15,"b":-1e15}', {"a": 1e15, "b": -1e15}, "the largest numbers"),
    (b'{"a":"\\u0001\\u007f\\uffff"}', {"a": "\x01\x7f\uffff"}, "odd characters that can be stored"),
    (b'[true,false,null,""]', [True, False, None, ""], "every kind of value"),
    (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None, "as deep as may be"),
    (b"[" + b",".join([b"0"] * (MAX_VALUES - 1)) + b"]", None, "as many values as may be"),
    (b'["' + b"[,{" * MAX_VALUES + b'\\",[\\\\"]', None, "brackets and commas of a text"),
]

REFUSED = [
    (b'{"command":"a\\u0000b"}', "command", "NUL"),
    (b'{"a":{"b":["x","\\u0000"]}}', "a.b.1", "NUL, deep inside"),
    (b'{"a\\u0000":1}', "body", "NUL in a name"),
    (b'{"command":"\\ud83d"}', "command", "half an emoji"),
    (b'{"command":"\\ude00\\ud83d"}', "command", "two halves in the wrong order"),
    (b'{"\\ud83d":1}', "body", "half an emoji in a name"),
    (b'{"a":NaN}', "body", "NaN"),
    (b'{"a":Infinity}', "body", "infinity"),
    (b'{"a":-Infinity}', "body", "infinity"),
    (b'{"a":1e999}', "a", "infinity by another name"),
    (b'{"a":10000000000000001}', "a", "an integer that others round"),
    (b'{"a":-1e16}', "a", "too small"),
    (b'{"a":1,"a":2}', "body", "a name twice"),
    (b'{"a":{"b":1,"c":2,"b":3}}', "body", "a name twice, deep inside"),
    (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), ".".join("0" * (MAX_DEPTH + 1)), "too deep"),
    (b"[" + b",".join([b"0"] * MAX_VALUES) + b"]", "body", "a value too many"),
    (b"[" + b",".join([b"[]"] * MAX_VALUES) + b"]", "body", "many empty lists"),
    (b"{" + b",".join(b'"%d":""' % number for number in range(MAX_VALUES * 4)) + b"}", "body", "many names"),
]

NOT_JSON = [
    (b"", "nothing"),
    (b"{", "cut off"),
    (b"{'a':1}", "Python"),
    (b'{"a":1}{"a":1}', "two documents"),
    (b'{"a":"\xff"}', "not UTF-8"),
    (b'{"a":"\xed\xa0\xbd"}', "a surrogate as three bytes, which is not UTF-8 either"),
    (b'{"a":"\xf0\x9f\x98"}', "UTF-8, cut off"),
    (b'{"a":"\n"}', "a bare line break"),
    (b"[" * 100_000, "very deep, and cut off"),
    (b"[" * 100_000 + b"]" * 100_000, "very deep"),
    (b"1" * 5_000, "more digits than a number is read with"),
    ('{"a":"x"}'.encode("utf-16"), "UTF-16"),
    (b"\xef\xbb\xbf{}", "a byte order mark"),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("body", "value", "reason"), ACCEPTED)
def test_what_can_be_stored_passes_unchanged(body: bytes, value: object, reason: str) -> None:
    assert parse(body) == (json.loads(body) if value is None else value), reason


@pytest.mark.parametrize(("body", "field", "reason"), REFUSED)
def test_what_cannot_be_stored_is_refused_naming_where(body: bytes, field: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(body)
    assert [item.field for item in refused.value.fields] == [field], reason


@pytest.mark.parametrize(("body", "reason"), NOT_JSON)
def test_what_is_not_json_is_called_so(body: bytes, reason: str) -> None:
    with pytest.raises(NotJson):
        parse(body)


@given(JSON)
def test_a_document_passes_unchanged_unless_it_holds_what_postgresql_cannot(document: object) -> None:
    text = json.dumps(document)
    if "\\u0000" in text:
        return
    assert parse(text.encode()) == document


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused_and_what_is_read_can_be_sent_on(body: bytes) -> None:
    try:
        value = parse(body)
    except InvalidInput:
        return
    assert "\x00" not in json.dumps(value, ensure_ascii=False, allow_nan=False).encode().decode()
