"""A client's connection: the channel of a run, or a direct connection.

Invariant: requests are decided one by one, in the order of arrival, each by its own head. While one waits, or the
client does not take its answers, reading stops: memory stays flat however much a client sends.
"""

import asyncio
from enum import Enum, auto

from caisson.common.channel import SIGNATURE, Incomplete, Preamble, Refused, read_preamble
from caisson.proxy.api.exchange import Exchange
from caisson.proxy.api.patience import Patience
from caisson.proxy.api.reader import KnownHeads, RequestReader, Unreadable
from caisson.proxy.api.turns import Reading, Turns
from caisson.proxy.domain.gate import Gate
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.requests import Headers, Request
from caisson.proxy.writes import Writes


class _Phase(Enum):
    OPENING = auto()
    HTTP = auto()
    SWITCHED = auto()
    LINGERING = auto()


_HTTP = _Phase.HTTP  # looked up for every piece of data


class Channel(asyncio.Protocol):
    """One connection. `channels` holds all that are open; `bound` is the request id that a preamble proved."""

    def __init__(self, gate: Gate, channels: set["Channel"], known: KnownHeads, writes: Writes) -> None:
        self._gate = gate
        self._writes = writes
        self._channels = channels
        self._transport: asyncio.Transport | None = None
        self._reader = RequestReader(self, known)
        self._phase = _Phase.OPENING
        self._opening = b""
        self._reading = Reading()
        self._turns = Turns(self._reading)
        self._latest: Exchange | None = None
        self._kept: bytes | None = None
        self._takes_more = True
        self._is_unreadable = False
        self._patience = Patience()
        self.bound: str | None = None
        self.is_draining = False

    # The connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]  # TCP connections have a full transport
        self._reading.transport = self._transport
        self._channels.add(self)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._patience.is_stirred = True
        if self._phase is _HTTP:
            self._read(data)
        elif self._phase is _Phase.SWITCHED and self._turns.current is not None:
            self._turns.current.request_piece(data)
        elif self._phase is _Phase.OPENING:
            self._open(self._opening + data)

    def eof_received(self) -> None:
        """Take it that nobody waits for answers any more: a client that stops sending has gone (as nginx does)."""
        self._abandon()

    def connection_lost(self, _: Exception | None) -> None:
        """End what was going on."""
        self._channels.discard(self)
        self._transport = self._reading.transport = None
        self._abandon()

    def pause_writing(self) -> None:
        """Pass the pressure on."""
        self._turns.pause_answer()

    def resume_writing(self) -> None:
        """Pass the relief on."""
        self._turns.resume_answer()

    def check(self, now: float) -> None:
        """End what has taken too long."""
        if self._turns.current is not None:
            self._turns.current.check(now)
        elif self._phase is _Phase.LINGERING:
            if self._patience.has_lingered(now):
                self.cut()
        elif self._patience.is_head_late(now, between=self._reader.is_between):
            refusal = Refuse(reason=Reason.REQUEST_TIMEOUT, detail="The request's head did not arrive in time.")
            self._unreadable(refusal)
        elif self._patience.is_idle(now):
            self._close()

    def drain(self) -> None:
        """Take no more requests: close now, or after what is going on."""
        self.is_draining = True
        if self._turns.current is None and self._reader.is_between:
            self._close()

    # What the reader tells

    def request_began(self, request: Request, refusal: Refuse | None) -> None:
        """Begin an exchange, or put it in line."""
        self._latest = None
        if self._takes_more:
            self._takes_more = request.keep_alive
            self._latest = Exchange(self._gate, self, request, refusal)
            self._turns.enqueue(self._latest)

    def request_piece(self, data: bytes) -> None:
        """Pass some of the body on."""
        if self._latest is not None:
            self._latest.request_piece(data)

    def request_ended(self, trailers: Headers) -> None:
        """Pass the end on."""
        if self._latest is not None:
            self._latest.request_ended(trailers)

    # What the exchange asks for

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        if self._transport is not None:
            self._writes.write(self._transport, data)

    def hold(self) -> None:
        """Stop reading; holds add up."""
        self._reading.hold()

    def let_go(self) -> None:
        """Take one hold back."""
        self._reading.let_go()

    def switch(self) -> None:
        """Leave HTTP: pass on what came behind the request, and all that comes."""
        self._phase = _Phase.SWITCHED
        kept, self._kept = self._kept, None
        if kept is not None:
            if kept and self._turns.current is not None:
                self._turns.current.request_piece(kept)
            self.let_go()

    def exchange_over(self, *, stays_open: bool) -> None:
        """Turn to the next request, or close."""
        self._turns.current = None
        if not stays_open:
            self._finish()
            return
        kept, self._kept = self._kept, None
        if kept is not None:
            self.let_go()
            self._read(kept)
        if self._turns.has_more:
            self._turns.advance()
        if self.is_draining and self._turns.current is None and self._phase is _HTTP:
            self._close()

    def cut(self) -> None:
        """End the connection at once."""
        self._takes_more = False
        if self._transport is not None:
            self._transport.abort()

    # Inside

    def _open(self, data: bytes) -> None:
        if not SIGNATURE.startswith(data[: len(SIGNATURE)]):
            self._phase = _Phase.HTTP
            self._read(data)
            return
        match read_preamble(data, self._gate.channel_key):
            case Incomplete():
                self._opening = data
            case Preamble() as preamble:
                self.bound = preamble.request_id
                self._phase = _Phase.HTTP
                self._read(data[preamble.length :])
            case Refused() as refused:
                detail = f"The channel is refused: {refused.reason}."
                self._unreadable(Refuse(reason=Reason.CHANNEL_REFUSED, detail=detail))

    def _read(self, data: bytes) -> None:
        rest: bytes | None = data
        try:
            while rest:
                rest = self._reader.feed(rest)
                if rest is not None and self._latest is not None and self._latest.awaits_switch:
                    self._kept = rest
                    self.hold()
                    return
        except Unreadable as unreadable:
            self._unreadable(unreadable.refusal)

    def _unreadable(self, refusal: Refuse) -> None:
        self._is_unreadable = True
        latest = self._latest
        if latest is not None and not latest.is_received:
            self._takes_more = False
            latest.request_malformed(refusal)
        elif self._takes_more:
            self._takes_more = False
            nothing = Request(method=b"-", target=b"", headers=[], http11=True, keep_alive=False)
            self._latest = Exchange(self._gate, self, nothing, refusal)
            self._turns.enqueue(self._latest)

    def _finish(self) -> None:
        self._takes_more = False
        if self._latest is not None and self._latest.is_received and not self._is_unreadable:
            self._close()
        elif self._transport is not None:
            self._linger(self._transport)

    def _linger(self, transport: asyncio.Transport) -> None:
        """Read away what the client still sends: closing at once would reset the connection and lose the answer."""
        self._phase = _Phase.LINGERING
        self._writes.finish(transport)
        if transport.can_write_eof():
            transport.write_eof()
        self._reading.read_away()

    def _close(self) -> None:
        if self._transport is not None:
            self._writes.finish(self._transport)
            self._transport.close()

    def _abandon(self) -> None:
        self._takes_more = False
        self._turns.abandon()
