"""What the bus cannot carry is refused with a typed error on either way, and nobody waits for it."""

import pytest

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import PayloadTooLarge
from caisson.common.messages import Message
from caisson.common.settings import ServiceSettings
from caisson.stack.nats import EmbeddedNats

OVER_THE_LIMIT = 9 * 1024 * 1024


class Sized(Message):
    """Ask for an answer of a size, or be one."""

    size: int
    text: str = ""


def bus_of(nats: EmbeddedNats, user: str) -> Bus:
    settings = {"nats_url": nats.url, "nats_user": user, "nats_password": nats.passwords[user]}
    return Bus(ServiceSettings.model_validate(settings), service=user, on_closed=lambda: None)


async def answer(request: Sized) -> Sized:
    return Sized(size=request.size, text="x" * request.size)


@pytest.mark.parametrize("way", ["request", "answer"])
async def test_a_message_over_the_limit_is_refused_at_once(nats: EmbeddedNats, way: str) -> None:
    gateway, runner = bus_of(nats, "gateway"), bus_of(nats, "runner")
    gateway.serve(subjects.LEDGER_CLAIM, Sized, answer)
    await gateway.start()
    await runner.start()
    try:
        request = Sized(size=10, text="x" * OVER_THE_LIMIT) if way == "request" else Sized(size=OVER_THE_LIMIT)
        with pytest.raises(PayloadTooLarge):
            await runner.call(subjects.LEDGER_CLAIM, request, Sized, timeout_s=5)
        small = await runner.call(subjects.LEDGER_CLAIM, Sized(size=10), Sized, timeout_s=5)
        assert small.text == "x" * 10
    finally:
        await runner.stop()
        await gateway.stop()
