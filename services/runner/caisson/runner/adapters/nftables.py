"""The packet rules of a box's network namespace, loaded and read by libnftables.

Invariant: only TCP to and from the bridge's address leaves a socket; everything else is counted and refused at once.
"""

import ctypes
import json
from collections import Counter
from functools import cache
from typing import Any, Final

from caisson.runner.domain.layout import BRIDGE_ADDRESS, BRIDGE_PORT

TABLE: Final = "box"
REFUSED: Final = "refused"

_DESTINATIONS: Final = 128
_OUTPUT_JSON: Final = 1 << 4
_OUTPUT_NUMERIC_PROTOCOL: Final = 1 << 7  # names come from /etc/protocols, which a small host does not have
_PROTOCOLS: Final = {6: "tcp", 17: "udp"}

# A reset and an ICMP error pass the output hook themselves: without the accept, a refusal would be a time-out.
RULES: Final = f"""
table inet {TABLE} {{
  counter {REFUSED} {{ }}
  set to4 {{ typeof ip daddr . meta l4proto . th dport; flags dynamic; size {_DESTINATIONS}; counter; }}
  set to6 {{ typeof ip6 daddr . meta l4proto . th dport; flags dynamic; size {_DESTINATIONS}; counter; }}
  chain out {{
    type filter hook output priority 0; policy drop;
    ip daddr {BRIDGE_ADDRESS} tcp dport {BRIDGE_PORT} accept
    ip saddr {BRIDGE_ADDRESS} tcp sport {BRIDGE_PORT} accept
    tcp flags & rst == rst accept
    icmp type destination-unreachable accept
    icmpv6 type destination-unreachable accept
    counter name {REFUSED}
    meta l4proto {{ tcp, udp }} add @to4 {{ ip daddr . meta l4proto . th dport }}
    meta l4proto {{ tcp, udp }} add @to6 {{ ip6 daddr . meta l4proto . th dport }}
    meta l4proto tcp reject with tcp reset
    reject
  }}
}}
"""


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libnftables.so.1")
    context = ctypes.c_void_p
    library.nft_ctx_new.restype = context
    library.nft_ctx_new.argtypes = [ctypes.c_uint32]
    library.nft_ctx_free.argtypes = [context]
    library.nft_ctx_buffer_output.argtypes = [context]
    library.nft_ctx_buffer_error.argtypes = [context]
    library.nft_ctx_output_set_flags.argtypes = [context, ctypes.c_uint]
    library.nft_run_cmd_from_buffer.argtypes = [context, ctypes.c_char_p]
    for getter in (library.nft_ctx_get_output_buffer, library.nft_ctx_get_error_buffer):
        getter.argtypes = [context]
        getter.restype = ctypes.c_char_p
    return library


def load_rules() -> None:
    """Load the rules into this thread's network namespace.

    Raises:
        OSError: there is no libnftables, or the kernel refuses the rules.
    """
    _run(RULES)


def read_refused() -> Counter[str]:
    """Return the packets refused so far in this thread's namespace, by `address:port/protocol`.

    Raises:
        OSError: the sets cannot be read.
    """
    found: Counter[str] = Counter()
    for name in ("to4", "to6"):
        listed: dict[str, Any] = json.loads(_run(f"list set inet {TABLE} {name}"))
        for item in listed["nftables"]:
            for element in item.get("set", {}).get("elem", ()):
                address, protocol, port = element["elem"]["val"]["concat"]
                place = f"[{address}]" if ":" in address else address
                found[f"{place}:{port}/{_PROTOCOLS[int(protocol)]}"] += element["elem"]["counter"]["packets"]
    return found


def _run(command: str) -> str:
    library = _library()
    context = library.nft_ctx_new(0)
    try:
        library.nft_ctx_buffer_output(context)
        library.nft_ctx_buffer_error(context)
        library.nft_ctx_output_set_flags(context, _OUTPUT_JSON | _OUTPUT_NUMERIC_PROTOCOL)
        if library.nft_run_cmd_from_buffer(context, command.encode()) != 0:
            raise OSError(f"nftables: {library.nft_ctx_get_error_buffer(context).decode().strip()}")
        output: bytes = library.nft_ctx_get_output_buffer(context)
        return output.decode()
    finally:
        library.nft_ctx_free(context)
