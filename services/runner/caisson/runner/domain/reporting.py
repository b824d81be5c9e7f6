"""Security events of a step. Their ids are derived, so that a repeated report counts once."""

from collections.abc import Sequence
from typing import Final

from caisson.common.leases import Grant, SecurityEvent, SecurityKind
from caisson.runner.domain.boxes import Refusal
from caisson.runner.domain.guards.decision import Blocked

_MAX_DESTINATIONS: Final = 20


def command_blocked(grant: Grant, step_id: str, decision: Blocked) -> SecurityEvent:
    """Report a command that a guard refused."""
    return SecurityEvent(
        id=f"{step_id}.{grant.fence}.{SecurityKind.COMMAND_BLOCKED}",
        kind=SecurityKind.COMMAND_BLOCKED,
        run_id=grant.run_id,
        step_id=step_id,
        guard=decision.guard,
        reason=decision.reason,
        snippet=decision.snippet,
    )


def egress_blocked(grant: Grant, step_id: str, refused: Sequence[Refusal]) -> list[SecurityEvent]:
    """Report the packets that the room's kernel rules refused: one event per destination, the tail of them as one."""
    told, untold = refused[:_MAX_DESTINATIONS], refused[_MAX_DESTINATIONS:]
    facts = [{"destination": refusal.destination, "packets": refusal.packets} for refusal in told]
    if untold:
        facts.append({"destinations": len(untold), "packets": sum(refusal.packets for refusal in untold)})
    return [
        SecurityEvent(
            id=f"{step_id}.{grant.fence}.{SecurityKind.EGRESS_BLOCKED}.{number}",
            kind=SecurityKind.EGRESS_BLOCKED,
            run_id=grant.run_id,
            step_id=step_id,
            reason="A sandbox reaches nothing but the proxy; use $API_HOST for requests to an upstream.",
            detail=detail,
        )
        for number, detail in enumerate(facts)
    ]
