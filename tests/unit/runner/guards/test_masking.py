"""A snippet shows what was wrong and no credential."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caisson.runner.domain.guards.masking import MAX_SNIPPET_CHARS, mask, snippet


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param("curl -H 'Authorization: Bearer abc.def-123456'", "abc.def-123456", id="a bearer token"),
        pytest.param('curl -H "authorization: Basic dTpwYXNz"', "dTpwYXNz", id="basic authentication"),
        pytest.param("curl -u admin:hunter2 http://x", "hunter2", id="a user and password"),
        pytest.param("curl --user=admin:hunter2 http://x", "hunter2", id="the same, long"),
        pytest.param("curl https://admin:hunter2@x/y", "hunter2", id="a URL's user part"),
        pytest.param("git clone https://abcdef0123@x/y", "abcdef0123", id="a token as a URL's user"),
        pytest.param("mysql --password=hunter2", "hunter2", id="an option"),
        pytest.param("PASSWORD=hunter2 ./x", "hunter2", id="a variable"),
        pytest.param('API_KEY="hunter2" ./x', "hunter2", id="a quoted variable"),
        pytest.param("curl 'http://x?api_key=hunter2&a=1'", "hunter2", id="a query parameter"),
        pytest.param("""curl -d '{"client_secret": "hunter2"}'""", "hunter2", id="a JSON member"),
        pytest.param("curl -H 'X-Auth-Token: hunter2'", "hunter2", id="a header of one's own"),
        pytest.param("curl -b 'session=x' -H 'Cookie: sid=hunter2; a=b'", "hunter2", id="a cookie"),
        pytest.param("export K=sk-proj-abcdefgh12345678", "abcdefgh12345678", id="a key by its prefix"),
        pytest.param("echo ghp_abcdefghijklmnop1234", "abcdefghijklmnop1234", id="a GitHub token"),
        pytest.param("echo AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE", id="an AWS key"),
        pytest.param("echo eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "eyJzdWIiOiIxIn0", id="a JSON web token"),
        pytest.param(
            "echo 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "9f86d081884c7d65", id="a long hexadecimal value"
        ),
        pytest.param(
            "echo '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----'", "MIIEvQ", id="a key"
        ),
    ],
)
def test_what_looks_like_a_credential_is_not_shown(text: str, secret: str) -> None:
    shown = snippet(text, 0, len(text))
    assert secret not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "text",
    [
        'curl "$API_HOST/metrics/v1/totals?tenantId=globex"',
        "export TENANT_ID=globex",
        "cat ../other/data.csv",
        'curl -H "X-Api-Key: $API_KEY" x',
    ],
)
def test_what_was_wrong_is_shown(text: str) -> None:
    assert snippet(text, 0, len(text)) == text


def test_the_violation_is_inside_the_snippet_of_a_long_command() -> None:
    before, wrong, after = "echo a; " * 5000, "TENANT_ID=globex", "; echo b" * 5000
    shown = snippet(before + wrong + after, len(before), len(before) + len(wrong))
    assert wrong in shown
    assert len(shown) <= MAX_SNIPPET_CHARS


@given(st.text(max_size=300))
def test_masking_keeps_every_position(text: str) -> None:
    assert len(mask(text)) == len(text)
