"""The few rtnetlink and nfnetlink messages that a box's network needs, without a library's start-up cost.

Invariant: a socket speaks to the network namespace that it was opened in, from whatever thread it is used.
Source: linux/netlink.h, linux/rtnetlink.h and linux/netfilter/nf_tables.h.
"""

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

_REQUEST: Final = 0x1
_ACKNOWLEDGE: Final = 0x4
_EXCLUSIVE_CREATE: Final = 0x600
_ERROR: Final = 2

_NEW_ROUTE: Final = 24
_TABLE_MAIN: Final = 254
_PROTOCOL_BOOT: Final = 3
_UNICAST: Final = 1
_ATTRIBUTE_OIF: Final = 4
_ATTRIBUTE_PREFERRED_SOURCE: Final = 7

_GET_OBJECT: Final = (10 << 8) | 19
_OBJECT_TABLE: Final = 1
_OBJECT_NAME: Final = 2
_OBJECT_TYPE: Final = 3
_OBJECT_DATA: Final = 4
_TYPE_COUNTER: Final = 1
_COUNTER_PACKETS: Final = 2
_FAMILY_INET: Final = 1
_ATTRIBUTE_KIND: Final = 0x3FFF

_LOOPBACK_INDEX: Final = 1
_HEADER: Final = struct.Struct("=IHHII")
_BUFFER_BYTES: Final = 8192


def add_default_route(family: int, source: bytes | None = None) -> None:
    """Route everything of an address family over loopback, from the address `source`, in this thread's namespace.

    Raises:
        OSError: the kernel refuses.
    """
    route = struct.pack("=BBBBBBBBI", family, 0, 0, 0, _TABLE_MAIN, _PROTOCOL_BOOT, 0, _UNICAST, 0)
    route += _attribute(_ATTRIBUTE_OIF, struct.pack("=I", _LOOPBACK_INDEX))
    if source is not None:
        route += _attribute(_ATTRIBUTE_PREFERRED_SOURCE, source)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
        _ask(channel, _NEW_ROUTE, _REQUEST | _ACKNOWLEDGE | _EXCLUSIVE_CREATE, route)


def open_netfilter() -> socket.socket:
    """Open a socket to the packet filter of this thread's namespace."""
    netfilter = 12
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, netfilter)


def read_counter(channel: socket.socket, table: str, name: str) -> int:
    """Return the packets of a named counter of an `inet` table.

    Raises:
        OSError: the kernel refuses, or there is no such counter.
    """
    question = struct.pack("=BBH", _FAMILY_INET, 0, 0)
    question += _attribute(_OBJECT_TABLE, table.encode() + b"\0")
    question += _attribute(_OBJECT_NAME, name.encode() + b"\0")
    question += _attribute(_OBJECT_TYPE, struct.pack(">I", _TYPE_COUNTER))
    answer = _ask(channel, _GET_OBJECT, _REQUEST, question)
    data = dict(_attributes(answer[4:]))[_OBJECT_DATA]
    packets: int = struct.unpack(">Q", dict(_attributes(data))[_COUNTER_PACKETS])[0]
    return packets


def _ask(channel: socket.socket, kind: int, flags: int, body: bytes) -> bytes:
    channel.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, 1, 0) + body)
    answer = channel.recv(_BUFFER_BYTES)
    size, answered, *_ = _HEADER.unpack_from(answer)
    content = answer[_HEADER.size : size]
    if answered == _ERROR:
        number = -struct.unpack_from("=i", content)[0]
        if number:
            raise OSError(number, os.strerror(number), "netlink")
    return content


def _attribute(kind: int, value: bytes) -> bytes:
    header = struct.pack("=HH", 4 + len(value), kind)
    return header + value + bytes(-len(value) % 4)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= 4:  # noqa: PLR2004 - an attribute's header
        size, kind = struct.unpack_from("=HH", data)
        yield kind & _ATTRIBUTE_KIND, data[4:size]
        data = data[(size + 3) & ~3 :]
