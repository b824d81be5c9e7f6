"""What JetStream holds, read with the gateway's rights."""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from caisson.common.envelope import open_envelope
from caisson.common.subjects import EVENTS_STREAM, EVENTS_SUBJECTS
from caisson.stack.nats import EmbeddedNats

UNNUMBERED = {"run.cancelling", "session.deleted"}
"""Facts that are no event of a run."""


@asynccontextmanager
async def jetstream_of(server: EmbeddedNats) -> AsyncIterator[JetStreamContext]:
    """Connect to JetStream."""
    client = await nats.connect(
        server.url, user="gateway", password=server.passwords["gateway"], inbox_prefix=b"_INBOX_gateway"
    )
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def published_numbers(server: EmbeddedNats) -> dict[str, list[int]]:
    """Return by run the numbers of its events, in the order in which the stream holds them, if there is one."""
    numbers: dict[str, list[int]] = defaultdict(list)
    async with jetstream_of(server) as jetstream:
        try:
            stored = (await jetstream.stream_info(EVENTS_STREAM)).state.messages
        except NotFoundError:
            return numbers
        reader = await jetstream.subscribe(EVENTS_SUBJECTS, stream=EVENTS_STREAM, ordered_consumer=True)
        for _ in range(stored):
            message = await reader.next_msg(timeout=5)
            envelope = open_envelope(message.subject, message.data)[1]
            if envelope.type in UNNUMBERED:
                continue
            run_id, _, number = envelope.id.partition(":")
            assert run_id == envelope.run_id
            numbers[run_id].append(int(number))
        await reader.unsubscribe()
    return numbers


async def is_published(server: EmbeddedNats, run_id: str, number: int) -> bool:
    """Return whether the stream holds an event of a run."""
    return number in (await published_numbers(server)).get(run_id, ())
