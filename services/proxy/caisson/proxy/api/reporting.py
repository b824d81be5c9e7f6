"""What an exchange tells the recorder."""

import asyncio
from typing import TYPE_CHECKING

from caisson.common.ids import Ids
from caisson.proxy.domain.decisions import Findings
from caisson.proxy.domain.gate import Gate
from caisson.proxy.domain.places import FOREIGN, Location
from caisson.proxy.domain.records import Audit, Recorder, write_snippet
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.targets import Target, read_target

if TYPE_CHECKING:
    from caisson.proxy.api.exchange import Exchange

_NOWHERE: tuple[Location, ...] = ()


def report_findings(recorder: Recorder, exchange: "Exchange", findings: Findings) -> None:
    """Report each foreign tenant value that was replaced."""
    forward, caller = exchange.forward, exchange.caller
    if forward is None or caller is None:
        return
    for location, found in findings:
        if found is FOREIGN:
            recorder.rewrote(
                caller.ids,
                upstream=forward.prepared.policy.name,
                location=location,
                snippet=write_snippet(exchange.request.method, exchange.request.target),
            )


def report_refusal(gate: Gate, exchange: "Exchange", refusal: Refuse, bound: str | None) -> None:
    """Report a refusal, with the run that it is known to be of."""
    caller = exchange.caller or (gate.contexts.find(bound) if bound else None)
    ids: Ids | None = caller.ids if caller else None
    target = read_target(exchange.request.target)
    declared = isinstance(target, Target) and target.upstream in gate.declared.policies
    gate.recorder.refused(
        ids,
        refusal,
        upstream=target.upstream if isinstance(target, Target) and declared else None,
        snippet=write_snippet(exchange.request.method, exchange.request.target),
    )


def report_end(recorder: Recorder, exchange: "Exchange", status: int, reason: Reason | None) -> None:
    """Report the end of an exchange."""
    forward, caller, carriage = exchange.forward, exchange.caller, exchange.carriage
    delivery = carriage.delivery if carriage else None
    recorder.requested(
        Audit(
            ids=caller.ids if caller else None,
            upstream=forward.prepared.policy.name if forward else None,
            method=exchange.request.method,
            template=forward.template if forward else None,
            status=status,
            reason=reason,
            bytes_in=exchange.upload.size_bytes,
            bytes_out=delivery.size_bytes if delivery else 0,
            started_s=exchange.started,
            duration_s=asyncio.get_running_loop().time() - exchange.started,
            rewritten=tuple({location for location, _ in forward.findings})
            if forward and forward.findings
            else _NOWHERE,
            credential=forward.prepared.credential if forward else None,
            echoed=delivery is not None and delivery.echoed,
        )
    )
