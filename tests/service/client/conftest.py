"""Fixtures of the client's tests: the fake gateway, and a client of it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from caisson.client.client import Client
from caisson.client.retrying import Retries
from tests.support.fake_api import PLATFORM_KEY, FakeApi

QUICK = Retries(first_delay_s=0.01, max_delay_s=0.05, give_up_after_s=5, stream_give_up_after_s=5)


@pytest.fixture(scope="session")
def fake_api() -> Iterator[FakeApi]:
    """One server for all tests; `api` is the same, fresh."""
    with FakeApi() as server:
        yield server


@pytest.fixture
def api(fake_api: FakeApi) -> FakeApi:
    fake_api.reset()
    return fake_api


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with Client(api.url, PLATFORM_KEY, tenant="acme", user="u-1", retries=QUICK) as connected:
        yield connected
