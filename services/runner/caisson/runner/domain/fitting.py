"""Making a result fit into one message: the texts lose their middle, never the truth about their size."""

from typing import Final

from caisson.common.leases import FinishStep
from caisson.common.outcome import Output

_SMALLEST_CHARS: Final = 256


def fit(result: FinishStep, *, max_bytes: int) -> FinishStep:
    """Return the result with its longer text halved until the message has at most `max_bytes`."""
    while len(result.model_dump_json().encode()) > max_bytes:
        name = "stdout" if len(result.stdout.text) >= len(result.stderr.text) else "stderr"
        output: Output = getattr(result, name)
        if len(output.text) <= _SMALLEST_CHARS:
            return result
        result = result.model_copy(update={name: _halved(output)})
    return result


def _halved(output: Output) -> Output:
    split = len(output.text) // 2 if output.gap_at is None else output.gap_at
    head, tail = output.text[:split], output.text[split:]
    half = len(output.text) // 4
    kept_head = head[: max(half, 2 * half - len(tail))]
    kept_tail = tail[len(tail) - min(len(tail), 2 * half - len(kept_head)) :]
    return output.model_copy(
        update={"text": kept_head + kept_tail, "truncated": True, "gap_at": len(kept_head)},
    )
