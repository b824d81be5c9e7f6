"""What the proxy knows about a run: the value of one key in the NATS bucket `contexts`, named by the request id."""

from typing import Literal

from nacl.encoding import Base64Encoder
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from pydantic import Field, ValidationError

from caisson.common.errors import InvalidInput
from caisson.common.messages import Message


class Credential(Message):
    """A credential in clear. It exists in the request that stores it and inside the proxy, nowhere else.

    `tenant_id` and `upstream` are inside the seal, so that a sealed value cannot be moved to another place.
    """

    tenant_id: str
    upstream: str
    kind: Literal["bearer", "header"]
    value: str = Field(repr=False)


class SealedCredentials(Message):
    """The ciphertexts for one upstream: the run's own, and its tenant's."""

    run: str | None = None
    tenant: str | None = None


class RunContext(Message):
    """A run as the proxy knows it.

    `ttl_s` counts from when the value was received: no clock of another process is read. It is written again at
    each renewal of the lease and deleted with it.
    """

    request_id: str
    tenant_id: str
    user_id: str
    session_id: str | None
    run_id: str
    fence: int
    ttl_s: float
    datasets: list[str]
    credentials: dict[str, SealedCredentials]
    traceparent: str | None = None


def seal(credential: Credential, public_key: str) -> str:
    """Seal a credential to the proxy's X25519 public key (base64); the result is base64."""
    box = SealedBox(PublicKey(public_key.encode(), Base64Encoder))
    return box.encrypt(credential.model_dump_json().encode(), Base64Encoder).decode()


def unseal(sealed: str, private_key: str) -> Credential:
    """Open a sealed credential.

    Raises:
        InvalidInput: when it was not sealed to this key. The message never holds the content.
    """
    try:
        box = SealedBox(PrivateKey(private_key.encode(), Base64Encoder))
        return Credential.model_validate_json(box.decrypt(sealed.encode(), Base64Encoder))
    except (CryptoError, ValidationError, ValueError):
        raise InvalidInput("the credential was not sealed to this proxy's key", field="credential") from None
