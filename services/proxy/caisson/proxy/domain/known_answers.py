"""Heads of answers that have been read before.

Invariant: a head is known only after llhttp has accepted it with its body, and an answer is recalled only if it is
whole: these very bytes, and behind them a body of the length that they promise.
"""

from caisson.proxy.domain.answers import Answer, Framing

_END_OF_HEAD = b"\r\n\r\n"
_MAX_HEADS = 1024
_MAX_HEAD_BYTES = 2048


class KnownAnswers:
    """Plain answers by their heads, with the length of their bodies; for all connections, within bounds."""

    def __init__(self) -> None:
        self._answers: dict[bytes, tuple[Answer, int]] = {}

    def learn(self, data: bytes, answer: Answer) -> None:
        """Keep the head of a whole answer that was accepted, if it is plain: framed by length, staying open."""
        begins = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        if answer.framing is not Framing.LENGTH or not answer.stays_open or begins > _MAX_HEAD_BYTES:
            return
        if len(self._answers) >= _MAX_HEADS:
            self._answers.clear()
        self._answers[data[:begins]] = answer, len(data) - begins

    def recall(self, data: bytes) -> tuple[Answer, bytes] | None:
        """Return a known answer and its body, if that is all there is."""
        begins = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
        known = self._answers.get(data[:begins])
        if known is None or len(data) - begins != known[1]:
            return None
        return known[0], data[begins:]
