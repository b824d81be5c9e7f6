"""The private key, which opens what the gateway sealed."""

from nacl.encoding import Base64Encoder
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey

from caisson.common.contexts import Credential, unseal
from caisson.common.errors import Misconfigured


class Vault:
    """Opens sealed credentials. The key leaves this object in no way."""

    __slots__ = ("_private_key",)

    def __init__(self, private_key: str) -> None:
        """Check the key; raise Misconfigured when it is none."""
        try:
            PrivateKey(private_key.encode(), Base64Encoder)
        except (CryptoError, ValueError, TypeError):
            raise Misconfigured("PROXY_PRIVATE_KEY is not an X25519 private key in base64") from None
        self._private_key = private_key

    def open(self, sealed: str) -> Credential:
        """Return the credential in clear; raise InvalidInput when it was not sealed to this key."""
        return unseal(sealed, self._private_key)
