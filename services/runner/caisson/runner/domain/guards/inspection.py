"""All guards over one command, and over the scripts that it carries.

Invariant: the work is bounded: in depth, in the number of scripts, and each pattern in its length.
"""

from collections import deque
from typing import Final

from caisson.runner.domain.guards import (
    dataset_mismatch,
    env_reassignment,
    tenant_mismatch,
    workspace_escape,
)
from caisson.runner.domain.guards.commands import scripts_in, unwrapped
from caisson.runner.domain.guards.decision import Allowed, Blocked, Decision, Trusted
from caisson.runner.domain.guards.masking import mask, snippet
from caisson.runner.domain.guards.script import Script, Violation
from caisson.runner.domain.guards.syntax import read_script
from caisson.runner.domain.guards.words import UNKNOWN

_GUARDS: Final = (
    env_reassignment.find,
    tenant_mismatch.find,
    dataset_mismatch.find,
    workspace_escape.find,
)
_RAW_GUARDS: Final = (
    env_reassignment.find_raw,
    tenant_mismatch.find_raw,
    dataset_mismatch.find_raw,
    workspace_escape.find_raw,
)
_MAX_DEPTH: Final = 3
_MAX_SCRIPTS: Final = 32


def inspect(command: str, trusted: Trusted) -> Decision:
    """Parse a command and hold every guard against it and against the scripts in it."""
    pending = deque([(command, 0)])
    for _ in range(_MAX_SCRIPTS):
        if not pending:
            break
        text, depth = pending.popleft()
        script = read_script(text, trusted.environment)
        if violation := _first(script, trusted):
            return _blocked(violation)
        if depth < _MAX_DEPTH:
            pending.extend((carried, depth + 1) for carried in _carried(script))
    return Allowed()


def inspect_raw(command: str, trusted: Trusted) -> Decision:
    """Hold every guard against a command's text alone."""
    violation = _first_raw(command, trusted)
    return _blocked(violation) if violation else Allowed()


def _first(script: Script, trusted: Trusted) -> Violation | None:
    for find in _GUARDS:
        if violation := find(script, trusted):
            return violation
    return None if script.complete else _first_raw(script.text, trusted)


def _first_raw(text: str, trusted: Trusted) -> Violation | None:
    for find in _RAW_GUARDS:
        if violation := find(text, trusted):
            return violation
    return None


def _carried(script: Script) -> list[str]:
    words = (word for command in script.commands for inner in unwrapped(command) for word in scripts_in(inner))
    return [word.text.replace(UNKNOWN, "$_") for word in words]


def _blocked(violation: Violation) -> Blocked:
    return Blocked(
        guard=violation.guard,
        reason=mask(violation.reason),
        snippet=snippet(violation.text, violation.start, violation.end),
    )
