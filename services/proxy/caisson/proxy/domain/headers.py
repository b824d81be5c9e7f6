"""Which of a client's headers go on, decided by their folded names.

Invariant: nothing that frames, routes, authenticates or names a tenant passes from the client; what the proxy itself
says about these is written after, once.
"""

from collections.abc import Iterable
from enum import IntEnum

from caisson.proxy.domain.spelling import fold_header

_MAX_REMEMBERED = 4096
_MAX_REMEMBERED_BYTES = 128


class Fate(IntEnum):
    """What becomes of a header."""

    PASS = 0
    DROP = 1
    TENANT = 2


_DROPPED = frozenset(
    {
        # framing and the connection itself (RFC 9110, section 7.6.1)
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"te",
        b"transfer-encoding",
        b"upgrade",
        # who the caller is: the proxy's own word only
        b"authorization",
        b"x-request-id",
        # who asked whom by what name: routes a request past its target line
        b"forwarded",
        b"via",
        b"x-http-method",
        b"x-http-method-override",
        b"x-method-override",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-real-ip",
        b"true-client-ip",
        b"cf-connecting-ip",
        b"x-host",
    }
)
_DROPPED_PREFIXES = (b"proxy-", b"x-forwarded-", b"x-original-", b"x-rewrite-", b"x-envoy-")


class Fates(dict[bytes, Fate]):
    """The fate of each header name for one upstream; remembers the raw names it has seen, within bounds."""

    def __init__(self, *, tenant: Iterable[bytes], dropped: Iterable[bytes]) -> None:
        super().__init__()
        self._tenant = frozenset(map(fold_header, tenant))
        self._dropped = _DROPPED | frozenset(map(fold_header, dropped))

    def __missing__(self, raw: bytes) -> Fate:
        fate = self._decide(fold_header(raw))
        if len(self) >= _MAX_REMEMBERED:
            self.clear()
        if len(raw) <= _MAX_REMEMBERED_BYTES:
            self[raw] = fate
        return fate

    def _decide(self, name: bytes) -> Fate:
        if name in self._tenant:
            return Fate.TENANT
        if name in self._dropped or name.startswith(_DROPPED_PREFIXES):
            return Fate.DROP
        return Fate.PASS
