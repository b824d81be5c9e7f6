"""A plan is held against every limit before anything is stored, and the refusal names field and limit."""

from typing import Any

import pytest
from pydantic import ValidationError

from caisson.common.errors import InvalidId, InvalidInput, PayloadTooLarge
from caisson.gateway.domain import plans
from caisson.gateway.domain.limits import LimitExceeded
from caisson.gateway.domain.plans import RESERVED_NAMES, CredentialRequest, RunRequest, check_credential, plan
from tests.unit.gateway.test_limits import tenant

STEP = {"bash": {"command": "true"}}


def request(**changes: Any) -> RunRequest:
    return RunRequest.model_validate({"steps": [STEP], **changes})


def bash(command: str, **changes: Any) -> dict[str, Any]:
    return {"steps": [{"bash": {"command": command, **changes}}]}


REFUSED: list[tuple[dict[str, Any], type[InvalidInput], str, str]] = [
    ({"steps": []}, InvalidInput, "steps", "nothing to do"),
    ({"steps": [STEP] * (plans.MAX_STEPS + 1)}, InvalidInput, "steps", "too many"),
    (bash("  \n\t"), InvalidInput, "steps.0.bash.command", "blank"),
    (bash("x" * (plans.MAX_COMMAND_BYTES + 1)), PayloadTooLarge, "steps.0.bash.command", "too long for an argument"),
    (bash("é" * (plans.MAX_COMMAND_BYTES // 2 + 1)), PayloadTooLarge, "steps.0.bash.command", "bytes are counted"),
    (bash("x", timeout_s=0.0), InvalidInput, "steps.0.bash.timeout_s", "zero is no limit"),
    (bash("x", timeout_s=601.0), LimitExceeded, "steps.0.bash.timeout_s", "above the ceiling"),
    ({"limits": {"pids": 513}}, LimitExceeded, "limits.pids", "above the ceiling"),
    ({"env": {"1A": "x"}}, InvalidInput, "env.1A", "no variable's name"),
    ({"env": {"A=B": "x"}}, InvalidInput, "env.A=B", "would set another variable"),
    ({"env": {"": "x"}}, InvalidInput, "env.", "no name"),
    ({"env": {"A\n": "x"}}, InvalidInput, "env.A\n", "a line break behind a name"),
    ({"env": {f"V{n}": "" for n in range(101)}}, InvalidInput, "env", "too many"),
    ({"env": {"A": "x" * plans.MAX_ENV_BYTES}}, PayloadTooLarge, "env", "too much together"),
    ({"datasets": ["d"] * 101}, InvalidInput, "datasets", "too many"),
    ({"datasets": ["ok", ""]}, InvalidId, "datasets.1", "an id is not empty"),
    ({"upstreams": {"UP": {"bearer": "t"}}}, InvalidInput, "upstreams", "not a name"),
    ({"upstreams": {f"u{n}": {"bearer": "t"} for n in range(33)}}, InvalidInput, "upstreams", "too many"),
    ({"upstreams": {"api": {}}}, InvalidInput, "upstreams.api", "no credential"),
    ({"metadata": {"a": "x" * plans.MAX_METADATA_BYTES}}, PayloadTooLarge, "metadata", "too large"),
]

MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"steps": [{"bash": {"command": "x", "timeout_s": "30"}}]}, "a string is no number"),
    ({"steps": [{"bash": {"command": "x"}, "tool": {}}]}, "a step is one thing"),
    ({"steps": [{}]}, "a step is something"),
    ({"steps": STEP}, "not a list"),
    ({"on_failure": "ignore"}, "not one of the ways"),
    ({"env": {"A": 1}}, "a number is no text"),
    ({"limits": {"memory_mib": 1.5}}, "half a MiB"),
    ({"limits": {"memory_mib": True}}, "true is no number"),
    ({"limits": {"gpus": 1}}, "nobody counts these"),
    ({"tenant_id": "globex"}, "the body never names the tenant"),
]

CREDENTIALS: list[tuple[CredentialRequest, str | None, str]] = [
    (CredentialRequest(bearer="tok"), "tok", "as it is"),
    (CredentialRequest(bearer="tok\n"), "tok", "a file's line end is trimmed"),
    (CredentialRequest(header="Basic dTpw\r\n"), "Basic dTpw", "also that of another system"),
    (CredentialRequest(bearer="tok\n\n"), None, "but one only"),
    (CredentialRequest(bearer="a\r\nX-Evil: 1"), None, "no header can be smuggled"),
    (CredentialRequest(bearer="tök"), None, "not ASCII"),
    (CredentialRequest(bearer=" tok"), None, "a space in front"),
    (CredentialRequest(bearer=""), None, "empty"),
    (CredentialRequest(bearer="tok-1", header="tok-2"), None, "two forms at once"),
    (CredentialRequest(bearer="x" * (plans.MAX_CREDENTIAL_CHARS + 1)), None, "too long"),
]


@pytest.mark.parametrize(("change", "error", "field", "reason"), REFUSED)
def test_a_plan_beyond_a_limit_is_refused_naming_the_field(
    change: dict[str, Any], error: type[InvalidInput], field: str, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan(request(**change), tenant=tenant())
    assert type(refused.value) is error, reason
    assert [item.field for item in refused.value.fields] == [field]


@pytest.mark.parametrize(("change", "reason"), MALFORMED)
def test_a_request_of_another_form_is_refused_and_nothing_is_coerced(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError):
        request(**change)


@pytest.mark.parametrize("name", sorted(RESERVED_NAMES))
def test_a_variable_that_caisson_sets_cannot_be_set(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        plan(request(env={name: "x"}), tenant=tenant())
    assert [(item.field, item.message) for item in refused.value.fields] == [(f"env.{name}", "is reserved")]


@pytest.mark.parametrize(("wanted", "value", "reason"), CREDENTIALS)
def test_a_credential_is_printable_ascii_in_exactly_one_form(
    wanted: CredentialRequest, value: str | None, reason: str
) -> None:
    if value is not None:
        assert check_credential(wanted, field="credential")[1] == value, reason
        return
    with pytest.raises(InvalidInput) as refused:
        check_credential(wanted, field="credential")
    shown = f"{refused.value.detail} {refused.value.fields}"
    assert not any(text in shown for text in (wanted.bearer, wanted.header) if text), "a refusal repeats no secret"


def test_a_plan_is_complete_each_step_has_an_id_and_a_final_time_limit() -> None:
    wanted = request(
        steps=[STEP, {"bash": {"command": "echo 😀", "timeout_s": 5}}],
        limits={"step_timeout_s": 7},
        env={"REGION": "eu"},
        upstreams={"metrics": {"bearer": "tok"}},
    )
    made = plan(wanted, tenant=tenant())
    assert [(step.command, step.timeout_s) for step in made.steps] == [("true", 7), ("echo 😀", 5)]
    assert len({step.step_id for step in made.steps}) == 2
    assert (made.on_failure, made.on_lost, made.env) == ("stop", "retry", {"REGION": "eu"})
    assert made.credentials == {"metrics": ("bearer", "tok")}
