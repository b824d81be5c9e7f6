"""What may become a memory. A tool's answer is an observation; nothing is remembered because it was seen.

Admission is a value: `Admitted` with how far the text is trusted, or `Rejected` with a reason for its author.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from caisson.common.errors import PayloadTooLarge
from caisson.common.memories import NewMemory
from caisson.memory.domain.assembling import is_context
from caisson.memory.domain.echo import find_echo
from caisson.memory.domain.instructions import is_instruction_like
from caisson.memory.domain.memories import ProvenanceKind
from caisson.memory.domain.noise import is_printable, is_refusal, is_small_talk, is_tool_noise
from caisson.memory.domain.secrets import find_secret

MAX_TEXT_BYTES = 256 * 1024
MIN_CONFIRMATIONS = 2
TRUST_OF_INSTRUCTIONS = 0.1
_TRUST = {"person": 1.0, "run": 0.7, "consolidation": 0.7, "distillation": 0.6, "import": 0.6, "tool": 0.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The text is stored as data; `trust` in [0, 1] says how far it is believed."""

    trust: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The text is not stored. `similar_to` names the memory that it repeats."""

    reason: str
    similar_to: str | None = None


def check_size(text: str, *, field: str) -> None:
    """Raise PayloadTooLarge, naming the limit, where a text is over 256 KiB."""
    size = len(text.encode())
    if size > MAX_TEXT_BYTES:
        raise PayloadTooLarge(f"{field} has {size} bytes; the limit is {MAX_TEXT_BYTES} (256 KiB)", field=field)


def admit(new: NewMemory, *, injected: Mapping[str, str]) -> Admitted | Rejected:
    """Decide about one memory.

    Args:
        new: what is to be remembered; its size is checked before.
        injected: texts by memory id that recalls of the same session returned.
    """
    if reason := refuse_text(new.text):
        return Rejected(reason=reason)
    if repeated := find_echo(new.text, injected):
        return Rejected(reason="echo: a recall of this session returned this very text", similar_to=repeated)
    if is_context(new.text):
        return Rejected(reason="echo: a recall assembled this text")
    if broken := _breaks_layer(new):
        return Rejected(reason=broken)
    return Admitted(trust=trust_of(new.text, new.provenance.kind))


def refuse_text(text: str) -> str | None:
    """Return why a text may not be remembered whoever says it, or None."""
    for is_noise, reason in _NOISE:
        if is_noise(text):
            return reason
    kind = find_secret(text)
    return None if kind is None else f"secret: the text holds {kind}"


def trust_of(text: str, kind: ProvenanceKind) -> float:
    """Return how far a text is believed: by who said it, and hardly where it speaks to a model."""
    return TRUST_OF_INSTRUCTIONS if is_instruction_like(text) else _TRUST[kind]


def _breaks_layer(new: NewMemory) -> str | None:
    by_layer = {"session": _session, "episodic": _episodic, "semantic": _semantic, "procedural": _procedural}
    return by_layer[new.layer](new)


def _session(new: NewMemory) -> str | None:
    return None if new.provenance.session_id else "session: a memory of a session needs provenance.session_id"


def _episodic(new: NewMemory) -> str | None:
    if not new.outcome or not new.outcome.strip():
        return "episodic: an episode needs an outcome: to what end it came"
    return None if new.provenance.run_id else "episodic: an episode needs provenance.run_id: which run it was"


def _semantic(new: NewMemory) -> str | None:
    if new.attribute is not None and new.subject is None:
        return "semantic: an attribute needs a subject"
    if new.provenance.kind == "tool" and new.confirmations == 0:
        return "semantic: a tool's answer is an observation; state it as a person or a run, or confirm it"
    return None


def _procedural(new: NewMemory) -> str | None:
    if new.provenance.kind == "person" or new.confirmations >= MIN_CONFIRMATIONS:
        return None
    return f"procedural: a rule needs a person or {MIN_CONFIRMATIONS} confirmed successes, not {new.confirmations}"


_NOISE: tuple[tuple[Callable[[str], bool], str], ...] = (
    (lambda text: not text.strip(), "empty: there is no text"),
    (lambda text: not is_printable(text), "unprintable: the text has control characters or nothing to read"),
    (is_refusal, "refusal: a model's refusal says nothing about the world"),
    (is_small_talk, "small talk: nothing in it lasts"),
    (is_tool_noise, "tool noise: output of a tool without a finding"),
)
