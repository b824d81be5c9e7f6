"""What is one text, one id, one set of scopes."""

import pytest

from caisson.common.ids import TenantId
from caisson.memory.domain.hashing import content_hash, external_memory_id, fact_key, scope_key

ACME, OTHER = TenantId("acme"), TenantId("other")


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("Likes tea", "  likes\n TEA ", True),
        ("cafe\u0301", "caf\u00e9", True),
        ("likes\u200b tea", "likes tea", True),
        ("likes tea", "likes tea!", False),
        ("x\u00b2", "x2", False),
        ("a" + "\u0301\u0327" * 40, "a" + "\u0301\u0327" * 41, False),
    ],
)
def test_normalised_texts_meet_and_others_do_not(one: str, two: str, *, same: bool) -> None:
    assert (content_hash(ACME, one) == content_hash(ACME, two)) is same


def test_hashes_of_two_tenants_never_meet() -> None:
    assert content_hash(ACME, "likes tea") != content_hash(OTHER, "likes tea")


@pytest.mark.parametrize("external", ["mem-1", "./a.md_1", "6F1C2F0E-5A57-5D0B-9D55-5F3A0C8F4C11", "0", str(2**63)])
def test_any_external_id_has_one_stable_id_of_its_tenant_and_owner(external: str) -> None:
    own = external_memory_id(ACME, "user:u1", external)
    assert own == external_memory_id(ACME, "user:u1", external)
    assert (
        len({own, external_memory_id(OTHER, "user:u1", external), external_memory_id(ACME, "tenant", external)}) == 3
    )


def test_keys_of_parts_do_not_meet_by_joining() -> None:
    assert fact_key("a", "bc") != fact_key("ab", "c")
    assert fact_key("Ana ", "Manager") == fact_key("ana", "manager")
    assert fact_key("ana", None) is None
    assert scope_key(["b", "a", "a"]) == scope_key(["a", "b"]) != scope_key(["ab"])
