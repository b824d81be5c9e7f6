"""A sealed credential opens with the proxy's key alone, and says whose it is."""

import pytest
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from caisson.common.contexts import Credential, RunContext, SealedCredentials, seal, unseal
from caisson.common.errors import InvalidInput

SECRET = "tok-5f2c9a"
CREDENTIAL = Credential(tenant_id="acme", upstream="metrics", kind="bearer", value=SECRET)


def keys() -> tuple[str, str]:
    """Return a fresh (private, public) pair in base64."""
    private = PrivateKey.generate()
    return private.encode(Base64Encoder).decode(), private.public_key.encode(Base64Encoder).decode()


def test_the_proxys_key_opens_what_was_sealed_to_it() -> None:
    private, public = keys()
    sealed = seal(CREDENTIAL, public)
    assert SECRET not in sealed
    assert unseal(sealed, private) == CREDENTIAL
    assert seal(CREDENTIAL, public) != sealed, "each seal is made with a key of its own"


def test_another_key_or_a_changed_ciphertext_opens_nothing_and_the_error_tells_nothing() -> None:
    private, public = keys()
    sealed = seal(CREDENTIAL, public)
    flipped = ("A" if sealed[40] != "A" else "B").join((sealed[:40], sealed[41:]))
    for text, key in ((sealed, keys()[0]), (flipped, private), ("", private), ("not base64!", private), (sealed, "")):
        with pytest.raises(InvalidInput) as refused:
            unseal(text, key)
        assert SECRET not in f"{refused.value!r} {refused.value.fields}"
        assert refused.value.__cause__ is None


def test_a_seal_keeps_the_tenant_it_was_made_for() -> None:
    private, public = keys()
    moved = SealedCredentials(run=None, tenant=seal(CREDENTIAL, public))
    context = RunContext(
        request_id="req_1",
        tenant_id="globex",
        user_id="u-1",
        session_id=None,
        run_id="run_1",
        fence=1,
        ttl_s=15,
        datasets=[],
        credentials={"metrics": moved},
    )
    planted = context.credentials["metrics"].tenant
    assert planted is not None
    assert unseal(planted, private).tenant_id == "acme" != context.tenant_id


def test_a_credential_does_not_show_its_value_when_printed() -> None:
    assert SECRET not in f"{CREDENTIAL!r} {CREDENTIAL}"


def test_what_is_sealed_but_no_credential_is_refused() -> None:
    private, public = keys()
    with pytest.raises(InvalidInput):
        unseal(seal(CREDENTIAL.model_copy(update={"kind": "cookie"}), public), private)
