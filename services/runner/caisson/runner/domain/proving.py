"""The proof that a host confines: a box that looks at itself, and what it must have seen.

Invariant: a runner whose host has not proven every layer makes no rooms.
"""

from typing import Final

from caisson.common.leases import Limits
from caisson.common.outcome import Exited
from caisson.runner.domain.boxes import BoxCommand, BoxResult, Place

_UID: Final = 65_533
"""Above every tenant's uid, and nobody's."""

_NO_CAPABILITY: Final = "0" * 16
_EXPECTED: Final = {
    "Uid": "\t".join([str(_UID)] * 4),
    "Gid": "\t".join([str(_UID)] * 4),
    "Groups": "",
    "CapInh": _NO_CAPABILITY,
    "CapPrm": _NO_CAPABILITY,
    "CapEff": _NO_CAPABILITY,
    "CapBnd": _NO_CAPABILITY,
    "CapAmb": _NO_CAPABILITY,
    "NoNewPrivs": "1",
    "Seccomp": "2",
}
_FORBIDDEN_DESTINATION: Final = "192.0.2.1:80/tcp"

PROBE_LIMITS: Final = Limits(memory_mib=64, pids=8, disk_mib=1, output_kib=16)
PROBE: Final = BoxCommand(
    script='printf "%s\\n" "$(</proc/self/status)"; { : </dev/tcp/192.0.2.1/80; } 2>/dev/null; exit 0',
    environment={},
    timeout_s=2,
)


def probe_place(run_id: str) -> Place:
    """Return the place of a proof."""
    return Place(uid=_UID, run_id=run_id, request_id=run_id, limits=PROBE_LIMITS)


def unproven(result: BoxResult) -> list[str]:
    """Return what a probe's result fails to prove; empty when every layer holds."""
    if not isinstance(result.outcome, Exited):
        return [f"a box ended as {result.outcome.kind}: {getattr(result.outcome, 'reason', '')}"]
    seen = dict(line.split(":", 1) for line in result.stdout.text.splitlines() if ":" in line)
    wrong = [
        f"{name} is {seen.get(name, 'missing').strip()!r}"
        for name, value in _EXPECTED.items()
        if seen.get(name, "missing").strip() != value
    ]
    if all(refusal.destination != _FORBIDDEN_DESTINATION for refusal in result.refused):
        wrong.append("a forbidden connection was not refused and counted")
    return wrong
