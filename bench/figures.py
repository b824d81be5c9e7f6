"""A measured figure, and the bar that it is held against."""

from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Any, Literal

PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`holds` is None where there is no bar: the figure only informs."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    wanted: Literal["at most", "at least"] = "at most"

    @property
    def holds(self) -> bool | None:
        if self.bar is None:
            return None
        return self.value <= self.bar if self.wanted == "at most" else self.value >= self.bar

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"value": round(self.value, 3), "holds": self.holds}


def percentile(samples: list[float], percent: int) -> float:
    """Return a percentile of at least two samples."""
    return quantiles(samples, n=PERCENT, method="inclusive")[percent - 1]
