"""How long a memory stays warm. What is long unused goes cold: out of the index, still listed, never away."""

import math
from datetime import datetime, timedelta

from caisson.memory.domain.layers import Layer
from caisson.memory.domain.memories import Memory

SESSION_LIMIT = timedelta(days=30)
"""A session's memory ends with the session; should its end never be told, after this."""

SOONEST_COLD = timedelta(days=30)
"""Nothing goes cold sooner after its last use."""

_COLD_BELOW = 0.15
_HALF_LIFE_DAYS = {Layer.SESSION: 30.0, Layer.EPISODIC: 30.0, Layer.SEMANTIC: 180.0, Layer.PROCEDURAL: 365.0}


def strength(memory: Memory, now: datetime) -> float:
    """Return in [0, 1] how much a memory still matters.

    Importance, confidence and proven use weigh; it halves with each half-life since the last use, and every
    rewarded use makes the half-life longer (spaced repetition: forgetting slows with each recall).
    """
    worth = 0.5 * memory.importance + 0.2 * memory.confidence + 0.3 * (memory.q + 1) / 2
    idle_days = max(0.0, (now - memory.used_at) / timedelta(days=1))
    half_life = _HALF_LIFE_DAYS[memory.layer] * (1 + math.log1p(memory.visits))
    return float(worth * 0.5 ** (idle_days / half_life))


def has_gone_cold(memory: Memory, now: datetime) -> bool:
    """Whether an active memory should leave the index."""
    return now - memory.used_at >= SOONEST_COLD and strength(memory, now) < _COLD_BELOW
