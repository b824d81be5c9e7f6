"""Where commands write: results to stdout, everything else to stderr.

Invariant: what a sandbox wrote reaches a pipe byte for byte, and a terminal without its control sequences.
"""

import io
import sys
from typing import IO, Any

from rich.console import Console
from rich.text import Text

_KEPT = "\n\t"
_UNCUT = 100_000
_SYMBOLS = {code: 0x2400 + code for code in range(0x20) if chr(code) not in _KEPT} | {0x7F: 0x2421}
_CONTROLS = _SYMBOLS | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def harmless(text: str) -> str:
    """Make control characters visible, so that foreign text cannot act on a terminal."""
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def foreign(text: str, style: str = "") -> Text:
    """Wrap text that somebody else wrote: no markup, no control characters."""
    return Text(harmless(text), style=style)


def _console(stream: IO[str]) -> Console:
    """Return a console that cuts lines for a terminal only, never for a pipe."""
    width = None if stream.isatty() else _UNCUT
    return Console(file=stream, highlight=False, soft_wrap=True, width=width)


class Terminal:
    """Standard output and standard error of one command."""

    def __init__(self, stdout: IO[str] | None = None, stderr: IO[str] | None = None) -> None:
        self._streams = {"stdout": stdout or sys.stdout, "stderr": stderr or sys.stderr}
        self.out, self.err = (_console(self._streams[name]) for name in ("stdout", "stderr"))
        self._on_one_screen = all(stream.isatty() for stream in self._streams.values())
        self._line_open = dict.fromkeys(self._streams, False)

    def write(self, name: str, data: bytes) -> None:
        """Write output of a step to the stream of that name."""
        if not data:
            return
        stream = self._streams[name]
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.flush()
            stream.buffer.write(data)
        else:
            stream.write(harmless(data.decode(errors="replace")))
        stream.flush()
        places = self._streams if self._on_one_screen else (name,)
        self._line_open |= dict.fromkeys(places, not data.endswith(b"\n"))

    def note(self, *parts: Any) -> None:
        """Tell something about the work, on stderr, on a line of its own."""
        if self._line_open["stderr"]:
            self.err.print()
        self._line_open["stderr"] = False
        self.err.print(*parts)
