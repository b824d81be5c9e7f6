"""The tenant in a JSON body: one trusted member, and every other byte as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.proxy.domain.documents import Unrewritable, rewrite_document
from caisson.proxy.domain.places import FOREIGN, NOTHING, TRUSTED, Found, JsonPlace

NESTED = JsonPlace(keys=("tenant", "id"))
FLAT = JsonPlace(keys=("tenantId",))

CASES: tuple[tuple[JsonPlace, str, str, Found, str], ...] = (
    (FLAT, "{}", '{"tenantId":"acme"}', NOTHING, "inserted into an empty object"),
    (FLAT, ' { "a" : 1 }\n', ' {"tenantId":"acme", "a" : 1 }\n', NOTHING, "inserted before the first member"),
    (FLAT, '{"tenantId":"acme"}', '{"tenantId":"acme"}', TRUSTED, "already right"),
    (FLAT, '{"tenantId":null}', '{"tenantId":"acme"}', TRUSTED, "null names nobody"),
    (FLAT, '{"a":1, "tenantId" : "b" ,"c":2}', '{"a":1, "tenantId" : "acme" ,"c":2}', FOREIGN, "replaced in place"),
    (FLAT, '{"tenantId":"b","tenantId":"acme"}', '{"tenantId":"acme"}', FOREIGN, "first wrong, last right"),
    (FLAT, '{"tenantId":"acme" , "tenantId":"b"}', '{"tenantId":"acme"}', FOREIGN, "first right, last wrong"),
    (FLAT, '{"TENANT_ID":"b","x":1}', '{"tenantId":"acme","x":1}', FOREIGN, "another spelling"),
    (FLAT, '{"ten\\u0061ntId":"b"}', '{"tenantId":"acme"}', FOREIGN, "an escaped key"),
    (FLAT, '{"tenantId":{"$ne":""},"x":1}', '{"tenantId":"acme","x":1}', FOREIGN, "an object for a value"),
    (FLAT, '{"tenantId":[1,"}"],"x":"{"}', '{"tenantId":"acme","x":"{"}', FOREIGN, "brackets in strings"),
    (FLAT, '{"a":{"tenantId":"b"}}', '{"tenantId":"acme","a":{"tenantId":"b"}}', NOTHING, "another place"),
    (NESTED, "{}", '{"tenant":{"id":"acme"}}', NOTHING, "both levels inserted"),
    (NESTED, '{"tenant":{}}', '{"tenant":{"id":"acme"}}', NOTHING, "the inner level inserted"),
    (NESTED, '{"tenant":"b"}', '{"tenant":{"id":"acme"}}', NOTHING, "a scalar where an object belongs"),
    (NESTED, '{"tenant":{"id":"b","n":1}}', '{"tenant":{"id":"acme","n":1}}', FOREIGN, "siblings stay"),
    (
        NESTED,
        '{"tenant":{"id":"acme"},"x":[ ],"Tenant":{"id":"b"}}',
        '{"tenant":{"id":"acme"},"x":[ ]}',
        FOREIGN,
        "the outer twice",
    ),
    (NESTED, '{"tenant":{"ID":7,"id":"b"}}', '{"tenant":{"id":"acme"}}', FOREIGN, "the inner twice"),
    (
        NESTED,
        '{"n":1.50e+2,"s":"\\u00e9\\/","tenant":{"id":"b"}}',
        '{"n":1.50e+2,"s":"\\u00e9\\/","tenant":{"id":"acme"}}',
        FOREIGN,
        "numbers and escapes keep their form",
    ),
)


@pytest.mark.parametrize(
    ("place", "body", "expected", "found", "reason"), CASES, ids=[reason for *_, reason in CASES]
)
def test_a_document_is_rewritten(place: JsonPlace, body: str, expected: str, found: Found, reason: str) -> None:
    assert rewrite_document(body.encode(), place, "acme") == (expected.encode(), found)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"x"',
        b"{",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":1}{',
        b'{"a":NaN}',
        b"\xff{}",
        b"\xef\xbb\xbf{}",
        b'{"a":"\n"}',
    ],
)
def test_what_is_no_json_object_cannot_be_rewritten(body: bytes) -> None:
    with pytest.raises(Unrewritable):
        rewrite_document(body, FLAT, "acme")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
keys = st.text(max_size=4) | st.sampled_from(["tenant", "Tenant", "TENANT"])


@given(
    st.lists(
        st.tuples(keys, json_values | st.dictionaries(st.sampled_from(["id", "ID", "n"]), json_values)), max_size=6
    ),
    st.sampled_from([None, 1, "\t"]),
    st.text(min_size=1, max_size=6),
)
def test_any_object_ends_with_one_trusted_member_and_the_other_members_unchanged(
    members: list[tuple[str, Any]], indent: Any, trusted: str
) -> None:
    body = "{" + ",".join(f"{json.dumps(key)}:{json.dumps(value, indent=indent)}" for key, value in members) + "}"

    rewritten, _ = rewrite_document(body.encode(), NESTED, trusted)

    pairs = json.loads(rewritten, object_pairs_hook=list)
    tenants = [value for key, value in pairs if key.lower() == "tenant"]
    assert len(tenants) == 1
    assert [value for key, value in tenants[0] if key.lower() == "id"] == [trusted]
    others = [
        (key, json.loads(json.dumps(value), object_pairs_hook=list))
        for key, value in members
        if key.lower() != "tenant"
    ]
    assert [(key, value) for key, value in pairs if key.lower() != "tenant"] == others
