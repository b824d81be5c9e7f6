"""Answers that do not come: whatever breaks, a command runs once."""

import asyncio

import pytest
from starlette.responses import Response

from caisson.client.client import Client
from caisson.client.errors import IdempotencyKeyReused, InvalidInput, ServerError, Unavailable, Unreachable
from caisson.client.retrying import Retries
from tests.service.client.conftest import QUICK
from tests.support.cutting_relay import CuttingRelay
from tests.support.eventually import eventually
from tests.support.fake_api import PLATFORM_KEY, FakeApi
from tests.support.fake_api_answers import problem

BRIEF = Retries(first_delay_s=0.01, max_delay_s=0.02, give_up_after_s=0.2)


async def test_a_post_whose_answer_is_lost_is_made_again_and_runs_once(api: FakeApi) -> None:
    async with (
        CuttingRelay(api.url) as relay,
        Client(relay.url, PLATFORM_KEY, tenant="acme", user="u", retries=QUICK) as client,
    ):
        relay.lose = 3
        run = await client.create_run(commands=["charge the customer"])
        assert relay.lost == 3
    assert api.commands == ["charge the customer"]
    assert list(api.runs) == [run.id]
    posts = api.seen("POST", "/v1/runs")
    assert len(posts) == 4
    assert len({post.headers["idempotency-key"] for post in posts}) == 1


async def test_an_exec_whose_connection_breaks_waits_for_the_first_one(api: FakeApi) -> None:
    api.exec_gate.clear()
    async with (
        CuttingRelay(api.url) as relay,
        Client(relay.url, PLATFORM_KEY, tenant="acme", user="u", retries=QUICK) as client,
    ):
        running = asyncio.create_task(client.exec("charge the customer"))
        await eventually(lambda: len(api.seen("POST", "/v1/exec")) == 1)
        relay.cut()
        await eventually(lambda: len(api.seen("POST", "/v1/exec")) >= 3)
        api.exec_gate.set()
        assert (await running).finished
    assert api.commands == ["charge the customer"]


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_transient_refusal_is_tried_again_with_the_same_key(
    client: Client, api: FakeApi, status: int
) -> None:
    api.scripted.extend([Response(status_code=status), problem(status, "unavailable", "not now")])
    await client.create_run(commands=["true"])
    posts = api.seen("POST", "/v1/runs")
    assert len(posts) == 3
    assert len({post.headers["idempotency-key"] for post in posts}) == 1


async def test_each_call_has_a_key_of_its_own_and_a_given_one_is_kept(client: Client, api: FakeApi) -> None:
    first = await client.create_run(commands=["true"], idempotency_key="mine")
    again = await client.create_run(commands=["true"], idempotency_key="mine")
    other = await client.create_run(commands=["true"])
    assert first.id == again.id != other.id
    with pytest.raises(IdempotencyKeyReused):
        await client.create_run(commands=["false"], idempotency_key="mine")
    with pytest.raises(InvalidInput, match="Idempotency-Key"):
        await client.create_run(commands=["true"], idempotency_key="k" * 256)


async def test_a_bug_of_the_gateway_is_told_at_once(client: Client, api: FakeApi) -> None:
    api.scripted.append(problem(500, "internal", "the log has the cause"))
    with pytest.raises(ServerError):
        await client.create_run(commands=["true"])
    assert len(api.requests) == 1


async def test_a_delete_is_not_repeated_once_it_was_sent(client: Client, api: FakeApi) -> None:
    api.scripted.append(problem(503, "unavailable", "not now"))
    with pytest.raises(Unavailable):
        await client.delete_key("csn_1")
    assert len(api.requests) == 1


async def test_patience_ends(api: FakeApi) -> None:
    async with (
        CuttingRelay(api.url) as relay,
        Client(relay.url, PLATFORM_KEY, tenant="acme", user="u", retries=BRIEF) as client,
    ):
        relay.lose = 10_000
        with pytest.raises(Unreachable) as caught:
            await client.create_run(commands=["true"])
    assert caught.value.idempotency_key == api.requests[0].headers["idempotency-key"]
    assert api.commands == ["true"]
