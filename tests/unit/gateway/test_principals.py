"""The key and its two headers decide for whom a request acts, and nothing else."""

import pytest

from caisson.common.errors import InvalidId, TenantMismatch
from caisson.common.ids import TenantId
from caisson.gateway.domain.principals import (
    ApiKey,
    KeyKind,
    TenantRequired,
    UserRequired,
    act_for,
    mint,
    proves,
    split_token,
)

NOT_TOKENS = [
    ("", "nothing"),
    ("csn", "the scheme alone"),
    ("csn_a", "no secret"),
    ("csn_a_b_c", "one part too many"),
    ("CSN_a_b", "another scheme"),
    ("ghp_a_b", "another product's"),
    ("csn_a_é", "not ASCII"),
    ("csn_a_\u0661", "a digit of another script"),
]


def key(kind: KeyKind = KeyKind.PLATFORM, tenant: str | None = None) -> ApiKey:
    owner = TenantId(tenant) if tenant else None
    return ApiKey(key_id="csn_1", kind=kind, name="k", tenant=owner, secret_hash=b"")


def test_a_minted_key_is_proven_by_its_secret_and_by_no_other() -> None:
    one, other = mint(), mint()
    split = split_token(one.token)
    assert split is not None
    key_id, secret = split
    stored = ApiKey(key_id=key_id, kind=KeyKind.PLATFORM, name="k", tenant=None, secret_hash=one.secret_hash)
    assert key_id == one.key_id != other.key_id
    assert proves(secret, stored)
    assert not proves(secret[:-1], stored)
    assert not proves(other.token.rsplit("_", 1)[1], stored)
    assert secret.encode() not in one.secret_hash
    assert len(secret) == 64, "256 random bits: a plain hash suffices"


def test_keys_sort_by_when_they_were_made() -> None:
    first = mint().key_id
    later = first
    while later[:16] == first[:16]:
        later = mint().key_id
    assert first < later


@pytest.mark.parametrize(("token", "reason"), NOT_TOKENS)
def test_text_that_is_no_key_is_not_looked_up(token: str, reason: str) -> None:
    assert split_token(token) is None, reason


def test_a_platform_key_acts_for_whom_it_names() -> None:
    caller = act_for(key(), tenant="株式会社/a.b c", user="u-1")
    assert (caller.require_tenant(), caller.require_user()) == ("株式会社/a.b c", "u-1")
    anonymous = act_for(key(), tenant=None, user=None)
    with pytest.raises(TenantRequired):
        anonymous.require_tenant()
    with pytest.raises(UserRequired):
        anonymous.require_user()


def test_a_tenant_key_acts_for_its_own_tenant_whatever_the_header_says() -> None:
    bound = key(KeyKind.TENANT, "acme")
    assert act_for(bound, tenant=None, user=None).require_tenant() == "acme"
    assert act_for(bound, tenant="acme", user=None).require_user() == "key:csn_1", "a key without a user is one"
    for other in ("globex", "ACME", "acme.", "\u0430cme"):
        with pytest.raises(TenantMismatch):
            act_for(bound, tenant=other, user=None)


@pytest.mark.parametrize("value", ["", "a\nb", "x" * 129, "\u200b"])
def test_a_header_that_is_no_id_is_refused(value: str) -> None:
    with pytest.raises(InvalidId):
        act_for(key(), tenant=value, user=None)
    with pytest.raises(InvalidId):
        act_for(key(), tenant="acme", user=value)
