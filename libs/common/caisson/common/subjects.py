"""Every NATS subject of Caisson, in one file.

`caisson.<plane>.<noun>.<verb>.<tenant>.<user>.<session>.<run>.<step>`, "-" where a token does not apply.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from caisson.common.errors import InvalidInput
from caisson.common.ids import ABSENT, Ids, RunId, SessionId, StepId, TenantId, UserId, decode_token

_TOKENS: Final = 9
_NO_IDS: Final = Ids()

EVENTS_STREAM: Final = "EVENTS"
EVENTS_SUBJECTS: Final = "caisson.evt.>"
CONTEXTS_BUCKET: Final = "contexts"
CONTEXTS_STREAM: Final = f"KV_{CONTEXTS_BUCKET}"


class Plane(StrEnum):
    """What kind of traffic a subject carries."""

    EVENT = "evt"
    RPC = "rpc"
    OUTPUT = "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A parsed subject."""

    plane: Plane
    noun: str
    verb: str
    ids: Ids = _NO_IDS

    def __str__(self) -> str:
        return ".".join(("caisson", self.plane, self.noun, self.verb, *self.ids.tokens()))

    @property
    def template(self) -> str:
        """The subject without its ids: what metrics and spans may be labelled with."""
        return f"caisson.{self.plane}.{self.noun}.{self.verb}"

    @property
    def pattern(self) -> str:
        """The subscription that matches this noun and verb for all ids."""
        return f"{self.template}.*.*.*.*.*"


def parse(subject: str) -> Subject:
    """Parse a concrete subject.

    Raises:
        InvalidInput: when it is not one of ours.
    """
    tokens = subject.split(".")
    if len(tokens) != _TOKENS or tokens[0] != "caisson" or tokens[1] not in set(Plane):
        raise InvalidInput(f"not a subject of ours: {subject!r}", field="subject")
    tenant, user, session, run, step = (None if token == ABSENT else decode_token(token) for token in tokens[4:])
    ids = Ids(
        tenant=TenantId(tenant) if tenant else None,
        user=UserId(user) if user else None,
        session=SessionId(session) if session else None,
        run=RunId(run) if run else None,
        step=StepId(step) if step else None,
    )
    return Subject(plane=Plane(tokens[1]), noun=tokens[2], verb=tokens[3], ids=ids)


def rpc(noun: str, verb: str) -> Subject:
    """Return the subject of a request that is about no single run."""
    return Subject(plane=Plane.RPC, noun=noun, verb=verb)


def event(name: str, ids: Ids) -> Subject:
    """Return the subject of a fact named `noun.verb`."""
    noun, verb = name.split(".")
    return Subject(plane=Plane.EVENT, noun=noun, verb=verb, ids=ids)


def step_output(ids: Ids) -> Subject:
    """Return the subject of a step's live output."""
    return Subject(plane=Plane.OUTPUT, noun="step", verb="chunk", ids=ids)


def run_output_pattern(ids: Ids) -> str:
    """Return the subscription for the live output of every step of one run."""
    return ".".join(("caisson", Plane.OUTPUT, "step", "chunk", *ids.tokens()[:4], "*"))


def run_events_patterns(ids: Ids) -> tuple[str, ...]:
    """Return what matches the facts about every run of a session, whoever's the run is."""
    tenant, session = Ids(tenant=ids.tenant, session=ids.session).tokens()[0:3:2]
    return tuple(
        ".".join(("caisson", Plane.EVENT, noun, "*", tenant, "*", session, "*", "*"))
        for noun in ("run", "step", "security")
    )


RUN_QUEUED_PATTERN: Final = Subject(plane=Plane.EVENT, noun="run", verb="queued").pattern
CANCEL_WAKE_PATTERN: Final = Subject(plane=Plane.EVENT, noun="run", verb="cancelling").pattern

SESSION_DELETED: Final = Subject(plane=Plane.EVENT, noun="session", verb="deleted")

LEDGER_CLAIM: Final = rpc("ledger", "claim")
LEDGER_RENEW: Final = rpc("ledger", "renew")
LEDGER_START_STEP: Final = rpc("ledger", "start_step")
LEDGER_FINISH_STEP: Final = rpc("ledger", "finish_step")
LEDGER_FINISH_RUN: Final = rpc("ledger", "finish_run")
LEDGER_RELEASE: Final = rpc("ledger", "release")
LEDGER_RECORD_SECURITY: Final = rpc("ledger", "record_security")

MEMORY_REMEMBER: Final = rpc("memory", "remember")
MEMORY_GET: Final = rpc("memory", "get")
MEMORY_LIST: Final = rpc("memory", "list")
MEMORY_PATCH: Final = rpc("memory", "patch")
MEMORY_DELETE: Final = rpc("memory", "delete")
MEMORY_RECEIPT: Final = rpc("memory", "receipt")
MEMORY_HISTORY: Final = rpc("memory", "history")
MEMORY_SEARCH: Final = rpc("memory", "search")
MEMORY_CONTEXT: Final = rpc("memory", "context")
MEMORY_FEEDBACK: Final = rpc("memory", "feedback")
MEMORY_CONSOLIDATE: Final = rpc("memory", "consolidate")
MEMORY_DISTIL: Final = rpc("memory", "distil")
MEMORY_ERASE_USER: Final = rpc("memory", "erase_user")
MEMORY_EXPORT_USER: Final = rpc("memory", "export_user")
MEMORY_USAGE: Final = rpc("memory", "usage")
MEMORY_RECONCILE: Final = rpc("memory", "reconcile")
