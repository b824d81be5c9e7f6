"""The JetStream declarations, in one place. The gateway applies them at start and after a store was wiped.

A durable consumer is made by the service that works it off: it alone has the right to.
"""

import nats.errors
import nats.js.errors
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

from caisson.common.errors import Misconfigured, Unavailable
from caisson.common.subjects import CONTEXTS_STREAM, EVENTS_STREAM, EVENTS_SUBJECTS, Subject

ACK_WAIT_S = 30.0
_DAY_S = 86_400
_GIB = 1 << 30

STREAMS: tuple[StreamConfig, ...] = (
    StreamConfig(
        name=EVENTS_STREAM,
        subjects=[EVENTS_SUBJECTS],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.OLD,
        max_age=_DAY_S,
        max_bytes=_GIB,
        duplicate_window=120,
    ),
    StreamConfig(
        name=CONTEXTS_STREAM,
        subjects=["$KV.contexts.>"],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,
        max_msgs_per_subject=1,
        max_bytes=_GIB,
        allow_rollup_hdrs=True,
        deny_delete=True,
        allow_direct=True,
        allow_msg_ttl=True,
        subject_delete_marker_ttl=60,
        duplicate_window=120,
    ),
)

_COMPARED = (
    "subjects",
    "retention",
    "storage",
    "discard",
    "max_age",
    "max_bytes",
    "max_msgs_per_subject",
    "allow_msg_ttl",
    "allow_direct",
    "allow_rollup_hdrs",
    "deny_delete",
    "subject_delete_marker_ttl",
    "duplicate_window",
)


def durable(name: str, subject: Subject) -> ConsumerConfig:
    """Return the declaration of a durable consumer of one kind of fact; replicas share it by its name."""
    return ConsumerConfig(
        name=name,
        durable_name=name,
        filter_subject=subject.pattern,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ACK_WAIT_S,
        max_deliver=-1,
    )


async def declare(jetstream: JetStreamContext) -> None:
    """Create the streams that are missing and hold the others against their declaration.

    Raises:
        Misconfigured: naming the setting that drifted, with both values.
        Unavailable: JetStream does not answer now.
    """
    for wanted in STREAMS:
        try:
            await _declare_one(jetstream, wanted)
        except (nats.errors.Error, TimeoutError) as error:
            raise Unavailable(f"JetStream: {error!r}") from error


async def _declare_one(jetstream: JetStreamContext, wanted: StreamConfig) -> None:
    try:
        found = (await jetstream.stream_info(str(wanted.name))).config
    except nats.js.errors.NotFoundError:
        await jetstream.add_stream(wanted)
        return
    for name in _COMPARED:
        declared, actual = getattr(wanted, name), getattr(found, name)
        if declared is not None and declared != actual:
            raise Misconfigured(f"stream {wanted.name}: {name} is {actual!r}, declared {declared!r}")
