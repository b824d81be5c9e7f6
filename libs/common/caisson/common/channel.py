"""The channel between a runner's egress bridge and the proxy: a PROXY protocol v2 preamble with two TLVs.

Invariant: a preamble is accepted only with the HMAC of its request id; nothing else in it is believed.
Source: the PROXY protocol specification, section 2.2 (types 0xE0 to 0xEF are for applications).
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from typing import Final

SIGNATURE: Final = b"\r\n\r\n\x00\r\nQUIT\n"
HEADER_BYTES: Final = 16
MAX_PREAMBLE_BYTES: Final = 512

_VERSION_LOCAL: Final = 0x20
_UNSPECIFIED: Final = 0x00
_TLV_REQUEST_ID: Final = 0xE0
_TLV_PROOF: Final = 0xE1


@dataclass(frozen=True, slots=True, kw_only=True)
class Preamble:
    """A verified preamble: the run's request id, and how many bytes of the connection it took."""

    request_id: str
    length: int


@dataclass(frozen=True, slots=True)
class Incomplete:
    """More bytes are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The bytes are not a preamble, or its proof is wrong."""

    reason: str


def prove(request_id: str, key: bytes) -> bytes:
    """Return HMAC-SHA256 of the request id (32 bytes)."""
    return hmac.digest(key, request_id.encode(), hashlib.sha256)


def write_preamble(request_id: str, key: bytes) -> bytes:
    """Return the preamble that opens a channel for a run."""
    body = b"".join(
        struct.pack("!BH", kind, len(value)) + value
        for kind, value in ((_TLV_REQUEST_ID, request_id.encode()), (_TLV_PROOF, prove(request_id, key)))
    )
    return SIGNATURE + struct.pack("!BBH", _VERSION_LOCAL, _UNSPECIFIED, len(body)) + body


def read_preamble(data: bytes, key: bytes) -> Preamble | Incomplete | Refused:
    """Read a preamble from the start of `data`."""
    if data[: len(SIGNATURE)] != SIGNATURE[: len(data)]:
        return Refused(reason="no PROXY protocol v2 signature")
    if len(data) < HEADER_BYTES:
        return Incomplete()
    version, family, size = struct.unpack_from("!BBH", data, len(SIGNATURE))
    length = HEADER_BYTES + size
    if version != _VERSION_LOCAL or family != _UNSPECIFIED or length > MAX_PREAMBLE_BYTES:
        return Refused(reason="not a preamble of a Caisson bridge")
    if len(data) < length:
        return Incomplete()
    values = _read_tlvs(data[HEADER_BYTES:length])
    if values is None or values.keys() != {_TLV_REQUEST_ID, _TLV_PROOF}:
        return Refused(reason="the preamble does not hold a request id and its proof")
    try:
        request_id = values[_TLV_REQUEST_ID].decode("ascii")
    except UnicodeDecodeError:
        return Refused(reason="the request id is not ASCII")
    if not hmac.compare_digest(values[_TLV_PROOF], prove(request_id, key)):
        return Refused(reason="the proof does not match the request id")
    return Preamble(request_id=request_id, length=length)


def _read_tlvs(data: bytes) -> dict[int, bytes] | None:
    values: dict[int, bytes] = {}
    position = 0
    while position < len(data):
        if position + 3 > len(data):
            return None
        kind, size = struct.unpack_from("!BH", data, position)
        position += 3
        if position + size > len(data) or kind in values:
            return None
        values[kind] = data[position : position + size]
        position += size
    return values
