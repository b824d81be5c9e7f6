"""Fixtures only: the real servers, started once for the whole run."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from caisson.stack.nats import SERVICES, EmbeddedNats
from caisson.stack.postgres import EmbeddedPostgres


@pytest.fixture(scope="session")
async def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """URL of an empty database `caisson` whose owner may create further databases."""
    server = EmbeddedPostgres(_folder(tmp_path_factory, "postgres"), password=secrets.token_hex())
    await server.start()
    yield server.url
    await server.stop()


@pytest.fixture(scope="session")
async def nats(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedNats]:
    """A NATS server under the deployed configuration: `.url` and `.passwords[service]`."""
    passwords = {name: secrets.token_hex() for name in SERVICES}
    server = EmbeddedNats(_folder(tmp_path_factory, "nats"), passwords=passwords)
    await server.start()
    yield server
    await server.stop()


def _folder(factory: pytest.TempPathFactory, name: str) -> Path:
    return factory.mktemp(name)
