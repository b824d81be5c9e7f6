"""A gateway that could not keep its promises does not start."""

from typing import Any

import pytest
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey
from pydantic import ValidationError

from caisson.common.errors import Misconfigured
from caisson.gateway.app import serve
from caisson.gateway.settings import GatewaySettings

PUBLIC_KEY = PrivateKey.generate().public_key.encode(Base64Encoder).decode()


def settings(**changes: Any) -> GatewaySettings:
    needed = {"database_url": "postgresql:///nowhere", "nats_password": "n", "proxy_public_key": PUBLIC_KEY}
    return GatewaySettings.model_validate({**needed, **changes})


async def test_a_lease_shorter_than_three_heartbeats_is_refused() -> None:
    with pytest.raises(Misconfigured, match="GATEWAY_LEASE_S"):
        await serve(settings(lease_s=8.9, heartbeat_s=3))


@pytest.mark.parametrize("key", ["", "change-me", "AAAA", PUBLIC_KEY[:-4], "é" * 44])
def test_a_key_to_which_nothing_can_be_sealed_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="no X25519 public key"):
        settings(proxy_public_key=key)


@pytest.mark.parametrize("field", ["lease_s", "heartbeat_s", "reconcile_s", "relay_poll_s", "idempotency_ttl_s"])
def test_a_duration_is_above_zero(field: str) -> None:
    with pytest.raises(ValidationError):
        settings(**{field: 0})
