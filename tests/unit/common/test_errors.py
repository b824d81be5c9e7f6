"""The tree of errors: every class has a code of its own, and a code is rebuilt on the other side of the wire."""

import importlib
import pkgutil

import pytest

import caisson
from caisson.common import errors
from caisson.common.errors import CaissonError, FieldError, Internal, Unavailable, all_errors
from caisson.common.replies import ErrorReply


def _import_everything() -> None:
    for module in pkgutil.walk_packages(caisson.__path__, "caisson."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _tree(kind: type[CaissonError] = CaissonError) -> list[type[CaissonError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _tree(child))]


_import_everything()
OURS = [kind for kind in _tree() if kind.__module__.startswith("caisson.")]


def test_codes_are_unique_and_found() -> None:
    codes = [kind.code for kind in OURS]
    assert len(codes) == len(set(codes))
    assert {code: all_errors()[code] for code in codes} == {kind.code: kind for kind in OURS}


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.code)
def test_an_error_says_what_it_is_and_crosses_the_wire_by_its_code(kind: type[CaissonError]) -> None:
    assert kind.__doc__
    assert "code" in kind.__dict__, "a class without a code of its own would be taken for its parent"
    fields = (FieldError(field="steps.0", message="too long"),)
    wire = ErrorReply.of(kind("too long", fields=fields)).model_dump_json()
    rebuilt = ErrorReply.model_validate_json(wire).rebuild()
    assert type(rebuilt) is kind
    assert (rebuilt.detail, rebuilt.fields) == ("too long", fields)
    assert "caisson." not in wire, "no class path on the wire"


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.code)
def test_what_may_be_retried_is_what_was_unavailable_or_still_running(kind: type[CaissonError]) -> None:
    assert kind.retryable == (issubclass(kind, Unavailable) or kind.code == "idempotency_in_progress")


def test_an_unknown_code_is_a_failure_of_the_other_side() -> None:
    assert isinstance(ErrorReply(code="from_the_future", detail="?").rebuild(), Internal)


def test_the_drawn_tree_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    missing = [kind.__name__ for kind in OURS if kind.__module__ == errors.__name__ and kind.__name__ not in drawn]
    assert not missing
