"""Facts with a time in which they held, one after another, and questions about a day."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """Values of one thing, each from its day on. `question` is asked about days of every era."""

    attribute: str
    text: str
    question: str
    values: Sequence[tuple[str, str]]


ERAS: Sequence[Era] = (
    Era(
        attribute="support hours",
        text="Customer support answers the phone from {value}.",
        question="From when to when does customer support answer the phone?",
        values=(("2025-01-01", "nine to five"), ("2025-06-01", "eight to six"), ("2026-01-01", "seven to ten")),
    ),
    Era(
        attribute="sales lead",
        text="{value} is responsible for sales in the north.",
        question="Who is responsible for sales in the north?",
        values=(("2025-02-01", "Hedda Broman"), ("2025-09-15", "Piet Mulder"), ("2026-02-01", "Chiara Fonti")),
    ),
    Era(
        attribute="freight rate",
        text="A pallet to the islands costs {value} euros.",
        question="What does a pallet to the islands cost?",
        values=(("2025-01-15", "140"), ("2025-07-01", "155"), ("2026-03-01", "171")),
    ),
    Era(
        attribute="cleaning company",
        text="The offices are cleaned by {value}.",
        question="Which company cleans the offices?",
        values=(("2025-03-01", "Sparkle Brothers"), ("2025-11-01", "Tidy Works"), ("2026-04-01", "Moppe and Sons")),
    ),
)
