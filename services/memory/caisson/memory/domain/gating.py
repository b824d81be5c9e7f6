"""Retrieval as a decision: what is not near enough is not told, even when nothing else is.

Invariant: thresholds are of a leg's own score, never of a fused or blended one, which say nothing of nearness.
"""

from dataclasses import dataclass

from caisson.common.errors import Misconfigured


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """A memory passes on its cosine or on its lexical score, whichever suffices."""

    dense: float
    lexical: float


UNCALIBRATED = Thresholds(dense=0.22, lexical=0.6)
"""MiniLM's cosines of unrelated pairs end near 0.18 and those of related ones begin near 0.27."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Thresholds with what they were found for: an embedder, and a question set, by digest."""

    embedder: str
    set_hash: str
    thresholds: Thresholds


def passes(*, cosine: float | None, lexical: float | None, thresholds: Thresholds) -> bool:
    """Return whether a memory is near enough by one of its legs."""
    near = cosine is not None and cosine >= thresholds.dense
    return near or (lexical is not None and lexical >= thresholds.lexical)


def choose(calibrations: list[Calibration], *, embedder: str, set_hash: str | None) -> Thresholds:
    """Return the thresholds to start with.

    Args:
        calibrations: all that are stored.
        embedder: digest of the embedder in use.
        set_hash: the question set that a calibration must be of; None accepts any.

    Raises:
        Misconfigured: calibrated, but for another embedder or on another set.
    """
    if not calibrations and set_hash is None:
        return UNCALIBRATED
    mine = [calibration for calibration in calibrations if calibration.embedder == embedder]
    if not mine:
        known = ", ".join(calibration.embedder[:16] for calibration in calibrations) or "none"
        raise Misconfigured(
            f"the gate is calibrated for the embedders {known}, and the embedder is {embedder[:16]}: "
            "run `caisson memory calibrate` with this one, or `caisson memory calibrate --forget`"
        )
    if set_hash not in {None, mine[0].set_hash}:
        raise Misconfigured(
            f"the gate is calibrated on the question set {mine[0].set_hash[:16]}, and MEMORY_GATE_SET asks for "
            f"{str(set_hash)[:16]}: calibrate on that set, or unset MEMORY_GATE_SET"
        )
    return mine[0].thresholds
