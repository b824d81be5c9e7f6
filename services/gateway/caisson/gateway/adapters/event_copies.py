"""What JetStream still holds of the events of a session's runs."""

import nats.errors
import nats.js.errors

from caisson.common import subjects
from caisson.common.bus import Bus
from caisson.common.errors import Unavailable
from caisson.common.ids import Ids
from caisson.gateway.domain.deleting import Doomed


class NatsCopies:
    """The domain's `Copies`. Facts of other services about the session hold ids alone, and age."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def purge(self, doomed: Doomed) -> None:
        """Drop the events of its runs; raise Unavailable where that is not certain."""
        ids = Ids(tenant=doomed.tenant_id, session=doomed.session_id)
        try:
            for pattern in subjects.run_events_patterns(ids):
                await self._bus.jetstream.purge_stream(subjects.EVENTS_STREAM, subject=pattern)
        except nats.js.errors.NotFoundError:
            return
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise Unavailable(f"events cannot be purged: {error!r}") from error
