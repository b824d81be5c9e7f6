"""One connection to an upstream.

Invariant: it carries one request at a time, and none again after anything but exactly one answer came for the last.
"""

import asyncio
from collections.abc import Callable

from caisson.proxy.adapters.answer_reader import AnswerReader, Unreadable
from caisson.proxy.domain.answers import Framing
from caisson.proxy.domain.known_answers import KnownAnswers
from caisson.proxy.domain.links import Receiver
from caisson.proxy.writes import Writes


class UpstreamConnection(asyncio.Protocol):
    """A connection; `on_idle` takes it back between two requests."""

    def __init__(self, on_idle: Callable[["UpstreamConnection"], None], known: KnownAnswers, writes: Writes) -> None:
        self._writes = writes
        self._on_idle = on_idle
        self._transport: asyncio.Transport | None = None
        self._receiver: Receiver | None = None
        self._reader = AnswerReader(known)
        self._is_silent = True
        self._is_paused = False
        self.reused = False
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, receiver: Receiver, *, to_head: bool) -> None:
        """Take a request; `to_head` says that its answer has no body."""
        self._receiver = receiver
        self._is_silent = True
        self._reader.begin(receiver, to_head=to_head)

    def write(self, data: bytes) -> None:
        """Send bytes of the request."""
        if self._transport is not None:
            self._writes.write(self._transport, data)

    def pause_answer(self) -> None:
        """Stop reading."""
        if self._transport is not None and not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def resume_answer(self) -> None:
        """Read on."""
        if self._is_paused:
            self._is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def release(self) -> None:
        """Give it back for the next request, if it can carry one."""
        self._receiver = None
        if self._is_paused:
            self.resume_answer()
        transport = self._transport
        if self._reader.stays_open and transport is not None and not transport.is_closing():
            self.reused = True
            self._on_idle(self)
        else:
            self.abort()

    def abort(self) -> None:
        """End it, and once HTTP has been left not before what was written has gone; nothing more is told."""
        self._receiver = None
        if self._transport is None:
            return
        if self._reader.switched is None:
            self._transport.abort()
        else:
            self._writes.finish(self._transport)
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = transport  # type: ignore[assignment]  # TCP connections have a full transport

    def data_received(self, data: bytes) -> None:
        """Read some of the answer; between two requests nothing may come."""
        receiver, reader = self._receiver, self._reader
        self._is_silent = False
        if receiver is None:
            self.abort()
        elif reader.switched is not None:
            receiver.answer_piece(data)
            receiver.answer_paused()
        else:
            self._read(reader, receiver, data)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the holder, unless the end of the connection is how the answer ends."""
        receiver, self._receiver = self._receiver, None
        self._transport = None
        if receiver is None:
            return
        answer = self._reader.answer
        if error is None and answer is not None and answer.framing is Framing.CLOSE:
            self._reader.stays_open = False
            receiver.answer_ended([])
        else:
            receiver.link_lost(silent=self._is_silent)

    def pause_writing(self) -> None:
        """Pass the pressure on."""
        if self._receiver is not None:
            self._receiver.pause_request()

    def resume_writing(self) -> None:
        """Pass the relief on."""
        if self._receiver is not None:
            self._receiver.resume_request()

    def _read(self, reader: AnswerReader, receiver: Receiver, data: bytes) -> None:
        try:
            reader.feed(data)
        except Unreadable as unreadable:
            self.abort()
            receiver.answer_malformed(unreadable.refusal)
            return
        if self._receiver is None:
            return
        if reader.has_ended:
            receiver.answer_ended(reader.trailers)
        elif reader.switched is not None:
            receiver.switched(reader.switched)
        else:
            receiver.answer_paused()
