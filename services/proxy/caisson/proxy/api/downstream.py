"""The client's connection, as its exchanges need it."""

from typing import Protocol


class Downstream(Protocol):
    """Where answers go, and what must wait while they are made."""

    @property
    def bound(self) -> str | None:
        """The request id of the channel, when a preamble proved one."""

    @property
    def is_draining(self) -> bool:
        """Whether the connection must end after the current exchange."""

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""

    def hold(self) -> None:
        """Stop reading from the client; holds add up."""

    def let_go(self) -> None:
        """Take one hold back."""

    def switch(self) -> None:
        """Pass everything that comes to the exchange as it is: HTTP has ended."""

    def exchange_over(self, *, stays_open: bool) -> None:
        """The exchange has ended and its answer is complete."""

    def cut(self) -> None:
        """End the connection at once: its answer cannot be completed."""
