"""What an exchange tells the recorder."""

from time import monotonic
from typing import TYPE_CHECKING

from caisson.common.ids import Ids
from caisson.proxy.domain.gate import Gate
from caisson.proxy.domain.places import FOREIGN, Findings
from caisson.proxy.domain.records import Audit, Recorder, write_snippet
from caisson.proxy.domain.refusals import Reason, Refuse
from caisson.proxy.domain.targets import Target, read_path, split_target

if TYPE_CHECKING:
    from caisson.proxy.api.exchange import Exchange

_NOWHERE: Findings = []


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
    exchange.refused_at = _upstream(gate, exchange.request.target)
    gate.recorder.refused(
        ids,
        refusal,
        upstream=exchange.refused_at,
        snippet=write_snippet(exchange.request.method, exchange.request.target),
    )


def _upstream(gate: Gate, raw: bytes) -> str | None:
    split = split_target(raw)
    target = split if isinstance(split, Refuse) else read_path(split[0])
    return target.upstream if isinstance(target, Target) and target.upstream in gate.declared.policies else None


def report_end(recorder: Recorder, exchange: "Exchange", status: int, reason: Reason | None) -> None:
    """Report the end of an exchange."""
    forward, caller, carriage, upload = exchange.forward, exchange.caller, exchange.carriage, exchange.upload
    delivery = None if carriage is None else carriage.delivery
    recorder.requested(
        Audit(
            None if caller is None else caller.ids,
            None if forward is None else forward.route,
            exchange.refused_at if forward is None else forward.prepared.policy.name,
            exchange.request.method,
            status,
            reason,
            0 if upload is None else upload.size_bytes,
            0 if delivery is None else delivery.size_bytes,
            exchange.started,
            monotonic() - exchange.started,
            _NOWHERE if forward is None else forward.findings,
            delivery is not None and delivery.echoed,
            None if caller is None else caller.context.traceparent,
        )
    )
