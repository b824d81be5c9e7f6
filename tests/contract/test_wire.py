"""The messages between the services, as they stand on the wire: `wire.json` changes on purpose or not at all.

A service of the last release talks to one of this: a field that is removed, renamed or new without a default breaks
it.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from caisson.common import contexts, leases, memories, memory_upkeep, outcome, recalls
from caisson.common.messages import Message
from tests.support import wire_of_memory, wire_of_runs

GOLDEN = Path(__file__).with_name("wire.json")
MODULES = (contexts, leases, memories, memory_upkeep, outcome, recalls)
SAMPLES = [*wire_of_runs.SAMPLES, *wire_of_memory.SAMPLES]


def as_told(message: Message) -> Any:
    return json.loads(message.model_dump_json())


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_a_message_stands_on_the_wire_as_agreed(message: Message) -> None:
    agreed = json.loads(GOLDEN.read_text())[type(message).__name__]
    assert as_told(message) == agreed, f"if the wire is meant to change, change {GOLDEN.name} with it"
    assert type(message).model_validate_json(json.dumps(agreed)) == message


def test_every_message_is_in_the_agreement_and_nothing_else() -> None:
    declared = {
        name
        for module in MODULES
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Message) and kind.__module__ == module.__name__
    }
    assert {type(message).__name__ for message in SAMPLES} == declared | {"Envelope", "ErrorReply"}
    assert set(json.loads(GOLDEN.read_text())) == declared | {"Envelope", "ErrorReply"}


@pytest.mark.parametrize("message", SAMPLES, ids=lambda message: type(message).__name__)
def test_a_field_that_nobody_declared_is_refused(message: Message) -> None:
    with pytest.raises(ValueError, match="extra_forbidden"):
        type(message).model_validate_json(json.dumps({**as_told(message), "extra": 1}))
