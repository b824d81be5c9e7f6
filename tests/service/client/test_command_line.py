"""The `caisson` command against the fake gateway."""

import json
import re
from pathlib import Path

import pytest

from caisson.client import exit_codes
from tests.support.command_line import caisson
from tests.support.fake_api import PLATFORM_KEY, TENANT_KEY, FakeApi
from tests.support.fake_api_answers import problem
from tests.support.played_runs import Behaviour


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_exec_passes_on_output_and_exit_code(api: FakeApi) -> None:
    api.behaviours["make"] = Behaviour(
        outcome={"kind": "exited", "exit_code": 3}, stdout="größer\n".encode(), stderr=b"warning\n"
    )
    ended = caisson("exec", "make", "--timeout", "5", "--env", "A=b=c", "--dataset", "ds_1", api=api)
    assert (ended.code, ended.stdout, ended.stderr) == (3, "größer\n", "warning\n")
    body = api.seen("POST", "/v1/runs")[0].body
    assert body == {
        "steps": [{"bash": {"command": "make", "timeout_s": 5.0}}],
        "env": {"A": "b=c"},
        "datasets": ["ds_1"],
    }


ENDS: list[tuple[dict[str, object], int, str]] = [
    ({"kind": "exited", "exit_code": 0}, 0, ""),
    ({"kind": "exited", "exit_code": 3}, 3, ""),
    ({"kind": "signalled", "signal": 9}, 137, "✗ ended by signal 9 (SIGKILL)  12 ms\n"),
    (
        {"kind": "timed_out", "reason": "the limit of 5 s passed"},
        124,
        "✗ timed out: the limit of 5 s passed  12 ms\n",
    ),
    (
        {"kind": "blocked", "guard": "tenant_mismatch", "reason": "use $TENANT_ID"},
        126,
        "✗ blocked by guard tenant_mismatch: use $TENANT_ID  12 ms\n",
    ),
    ({"kind": "not_started", "reason": "no cgroup"}, 125, "✗ not started: no cgroup  12 ms\n"),
    ({"kind": "oom_killed", "reason": "512 MiB"}, 137, "✗ oom killed: 512 MiB  12 ms\n"),
    ({"kind": "lost", "reason": "the worker died"}, 75, "? lost: the worker died  12 ms\n"),
]


@pytest.mark.parametrize(("outcome", "code", "told"), ENDS, ids=[str(row[0]["kind"]) for row in ENDS])
def test_exec_ends_as_its_command_ended(api: FakeApi, outcome: dict[str, object], code: int, told: str) -> None:
    api.behaviours["it"] = Behaviour(outcome=outcome, stdout=b"before\n")
    ended = caisson("exec", "it", api=api)
    assert (ended.code, ended.stdout, ended.stderr) == (code, "before\n", told)


def test_output_that_came_live_is_written_once_and_completed_from_the_result(api: FakeApi) -> None:
    api.behaviours["mixed"] = Behaviour(
        watched=True,
        live=(("stdout", 0, "live\n"), ("stdout", 5, "\ufffd\ufffdraw")),
        stdout=b"live\n\xff\x00raw",
        text="live\n\ufffd\ufffdraw",
        lossy=True,
    )
    assert caisson("exec", "mixed", api=api).stdout_bytes == "live\n\ufffd\ufffdraw".encode()


def test_a_step_that_runs_again_is_told_and_written_whole(api: FakeApi) -> None:
    api.behaviours["count"] = Behaviour(
        watched=True, loses_worker=True, live=(("stdout", 0, "one\n"),), stdout=b"one\ntwo\n"
    )
    ended = caisson("exec", "count", api=api)
    assert ended.stdout.endswith("one\ntwo\n")
    assert ended.stderr.splitlines() == [
        "↻ the worker was lost; the run is queued again",
        "↻ the step runs again from its start",
    ]


def test_exec_as_json_is_one_document(api: FakeApi) -> None:
    document = caisson("exec", "echo hi", "--json", api=api).document
    assert document["run_id"] in api.runs
    assert (document["stdout"]["text"], document["outcome"]["kind"]) == ("echo hi\n", "exited")


RUN_FILE = """
steps:
  - bash: {command: "make all"}
  - bash:
      command: |
        make test
        make report
  - bash: {command: never reached}
metadata: {ticket: T-17}
"""


def test_a_run_is_told_step_by_step(api: FakeApi, tmp_path: Path) -> None:
    api.behaviours["make all"] = Behaviour(stdout=b"built\n")
    api.behaviours["make test\nmake report\n"] = Behaviour(
        outcome={"kind": "exited", "exit_code": 2},
        stderr=b"no [bold]newline",
        security={"kind": "egress_blocked", "reason": "1.1.1.1:443/tcp"},
    )
    file = tmp_path / "run.yaml"
    file.write_text(RUN_FILE)
    ended = caisson("run", str(file), api=api)
    told = re.sub(r"run_\w+", "run_…", re.sub(r"\d+ ms", "N ms", ended.stderr))
    assert ended.stdout == "built\n"
    assert told.splitlines() == [
        "run run_…",
        "▶ 1/3 make all",
        "✓ exited 0  N ms",
        "▶ 2/3 make test …",
        "⚑ egress_blocked: 1.1.1.1:443/tcp",
        "no [bold]newline",
        "✗ exited 2  N ms",
        "run failed: step_failed — a step exited  N ms",
    ]
    assert ended.code == 2


@pytest.mark.parametrize(
    ("source", "stdin"),
    [("run.json", None), ("-", '{"steps": [{"bash": {"command": "echo hi"}}]}'), ("-", RUN_FILE)],
    ids=["a JSON file", "JSON from stdin", "YAML from stdin"],
)
def test_a_run_as_json_is_one_document(api: FakeApi, tmp_path: Path, source: str, stdin: str | None) -> None:
    (tmp_path / "run.json").write_text('{"steps": [{"bash": {"command": "echo hi"}}]}')
    ended = caisson("run", source, "--json", api=api, stdin=stdin)
    assert (ended.code, ended.document["status"], ended.stderr) == (0, "succeeded", "")


def test_a_detached_run_is_told_by_its_id(api: FakeApi) -> None:
    ended = caisson("run", "-", "--detach", api=api, stdin=RUN_FILE)
    assert ended.stdout.split() == list(api.runs)


BAD_FILES: list[tuple[str, str, str]] = [
    ("not YAML, and maybe a secret in it", "steps: [s3cret: : :", "line 1"),
    ("no object", "- s3cret", "object"),
    ("a date is no JSON", "steps: []\nmetadata: {at: 2026-01-31, key: s3cret}", "JSON cannot carry"),
    ("NaN is no JSON", "limits: {timeout_s: .nan, key: s3cret}", "JSON cannot carry"),
]


@pytest.mark.parametrize(("content", "told"), [row[1:] for row in BAD_FILES], ids=[row[0] for row in BAD_FILES])
def test_a_file_that_is_no_run_is_wrong_usage_and_is_not_repeated(api: FakeApi, content: str, told: str) -> None:
    ended = caisson("run", "-", api=api, stdin=content)
    assert ended.code == exit_codes.USAGE
    assert told in ended.stderr
    assert "s3cret" not in ended.stderr
    assert api.requests == []


def test_lists_are_tables_for_people_and_lines_for_machines(api: FakeApi) -> None:
    for number in range(3):
        caisson("exec", f"echo {number}", api=api)
    table = caisson("runs", "--limit", "2", "--status", "succeeded", api=api).stdout.splitlines()
    assert table[0].split() == ["RUN", "STATUS", "STEPS", "CREATED", "TOOK", "SESSION", "WHY"]
    assert [line.split()[0:3] for line in table[1:]] == [[run, "succeeded", "1/1"] for run in list(api.runs)[:0:-1]]
    lines = caisson("runs", "--json", api=api).lines
    assert [line["id"] for line in lines] == list(api.runs)[::-1]
    assert caisson("runs", "--session", "ses_none", api=api).stdout == "none\n"


def test_events_are_written_and_end_with_the_run(api: FakeApi) -> None:
    caisson("exec", "echo hi", api=api)
    run = next(iter(api.runs))
    lines = caisson("events", run, "--after", "2", "--json", "--follow", api=api).lines
    assert [(line["seq"], line["type"]) for line in lines] == [
        (3, "step.started"),
        (4, "step.finished"),
        (5, "run.finished"),
    ]
    text = caisson("events", run, api=api).stdout.splitlines()
    assert text[0].split()[:2] == ["1", "run.queued"]
    assert len(text) == 5


def test_events_without_follow_end_where_nothing_more_comes(api: FakeApi) -> None:
    api.behaviours["sleep"] = Behaviour(holds=True)
    run = caisson("run", "-", "--detach", api=api, stdin='{"steps": [{"bash": {"command": "sleep"}}]}').stdout.strip()
    assert [line["seq"] for line in caisson("events", run, "--json", api=api).lines] == [1, 2, 3]
    ended = caisson("cancel", run, api=api)
    assert (ended.code, ended.stdout) == (0, f"{run} cancelled\n")
    assert caisson("cancel", run, "--json", api=api).document["status"] == "cancelled"


def test_administration_speaks_json_everywhere(api: FakeApi) -> None:
    api.security_events = [
        {"id": "sec_1", "kind": "egress_blocked", "reason": "x", "occurred_at": "2026-01-31T12:00:00.000Z"}
    ]
    session = caisson("sessions", "create", "--json", api=api).document["id"]
    assert [line["id"] for line in caisson("sessions", "list", "--json", api=api).lines] == [session]
    assert caisson("sessions", "show", session, "--json", api=api).document["tenant_id"] == "default"
    gone = {"session_id": session, "deleted": True}
    assert caisson("sessions", "delete", session, "--json", api=api).document == gone
    settings = ("--max-concurrency", "4", "--limit", "memory_mib=512", "--ceiling", "cpus=1.5")
    tenant = caisson("tenants", "set", "acme", *settings, "--json", api=api).document
    assert (tenant["max_concurrency"], tenant["limits"], tenant["ceilings"]) == (
        4,
        {"memory_mib": 512},
        {"cpus": 1.5},
    )
    assert caisson("tenants", "show", "acme", "--json", api=api).document == tenant
    key = caisson("keys", "create", "ci", "--tenant", "acme", "--json", api=api).document
    assert key["key"].startswith(key["id"])
    assert caisson("keys", "revoke", key["key"], "--json", api=api).document == {"revoked": key["id"]}
    assert caisson("keys", "list", "--json", api=api).lines[0]["revoked_at"]
    since = ("--since", "2026-01-01")
    assert caisson("security-events", *since, "--json", api=api).lines[0]["kind"] == "egress_blocked"
    assert "version" in caisson("version", "--json").document


def test_administration_speaks_to_people(api: FakeApi) -> None:
    assert caisson("sessions", "create", api=api).stdout == "ses_0\n"
    assert caisson("sessions", "delete", "ses_0", api=api).stdout == "ses_0: deleted\n"
    shown = caisson("tenants", "set", "acme", "--limit", "pids=64", api=api).stdout
    assert re.search(r"limits\.pids +64 *\n", shown)
    made = caisson("keys", "create", "ci", "--platform", api=api)
    assert (made.stdout, "shown only now" in made.stderr) == (f"{api.keys[0]['id']}_secret\n", True)
    assert caisson("keys", "list", api=api).stdout.splitlines()[1].split()[:4] == [
        api.keys[0]["id"],
        "ci",
        "platform",
        "valid",
    ]
    assert caisson("security-events", api=api).stdout == "none\n"


def test_secrets_come_from_the_environment_or_a_file_and_are_never_repeated(api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from file\n")
    ended = caisson(
        "exec",
        "true",
        "--upstream",
        "metrics=env:TOKEN",
        "--upstream",
        "orders=header:@token",
        api=api,
        env={"TOKEN": "s3cret"},
    )
    assert ended.code == 0
    assert api.seen("POST", "/v1/runs")[0].body["upstreams"] == {
        "metrics": {"bearer": "s3cret"},
        "orders": {"header": "from file"},
    }
    caisson("credentials", "set", "acme", "metrics", "--bearer-from", "env:TOKEN", api=api, env={"TOKEN": "s3cret"})
    assert api.credentials["acme", "metrics"] == {"bearer": "s3cret"}
    assert caisson("credentials", "delete", "acme", "metrics", "--json", api=api).document["deleted"]
    for arguments in (
        ("exec", "true", "--upstream", "metrics=s3cret"),
        ("exec", "true", "--upstream", "s3cret"),
        ("credentials", "set", "acme", "metrics", "--bearer-from", "s3cret"),
        ("--api-key", "s3cret", "runs"),
    ):
        refused = caisson(*arguments, api=api)
        assert (refused.code, "s3cret" in refused.stderr + refused.stdout) == (exit_codes.USAGE, False)


def test_refusals_name_code_field_and_limit_on_stderr(api: FakeApi) -> None:
    body = '{"steps": [], "limits": {"memory_mib": 9999}}'
    ended = caisson("run", "-", api=api, stdin=body)
    assert (ended.code, ended.stdout) == (exit_codes.API_ERROR, "")
    assert ended.stderr == ("error limit_exceeded: memory_mib: at most 2048\n  limits.memory_mib: at most 2048\n")
    as_json = caisson("run", "-", "--json", api=api, stdin=body)
    assert json.loads(as_json.stderr) == {
        "code": "limit_exceeded",
        "detail": "memory_mib: at most 2048",
        "status": 422,
        "errors": [{"field": "limits.memory_mib", "message": "at most 2048"}],
    }


def test_a_refusal_of_one_field_is_told_once(api: FakeApi) -> None:
    api.scripted.append(problem(422, "invalid_input", "limits.cpus: at most 4", "limits.cpus"))
    ended = caisson("exec", "true", api=api)
    assert ended.stderr == "error invalid_input: limits.cpus: at most 4\n"


def test_a_gateway_that_is_not_there_is_told_plainly() -> None:
    ended = caisson("runs", env={"CAISSON_URL": "http://127.0.0.1:9", "CAISSON_API_KEY": PLATFORM_KEY})
    assert ended.code == exit_codes.API_ERROR
    assert ended.stderr.startswith("error unreachable: no answer from the gateway")


def test_a_platform_key_acts_for_the_default_tenant_and_a_tenant_key_for_its_own(api: FakeApi) -> None:
    caisson("exec", "a", api=api)
    caisson("exec", "b", "--tenant", "acme", "--user", "u-1", api=api)
    caisson("exec", "c", api=api, env={"CAISSON_TENANT": "globex", "CAISSON_USER": "u-2"})
    caisson("exec", "d", api=api, env={"CAISSON_API_KEY": TENANT_KEY})
    who = [(run.document["tenant_id"], run.document["user_id"]) for run in api.runs.values()]
    assert who == [("default", "cli"), ("acme", "u-1"), ("globex", "u-2"), ("acme", "key:tenant")]
    assert api.commands == ["a", "b", "c", "d"]


def test_the_file_of_caisson_up_is_used_where_nothing_else_is_given(api: FakeApi, tmp_path: Path) -> None:
    folder = tmp_path / ".caisson"
    folder.mkdir()
    file = folder / "client.json"
    file.write_text(json.dumps({"url": api.url, "api_key": PLATFORM_KEY}))
    file.chmod(0o600)
    assert caisson("exec", "true").code == 0
    elsewhere = caisson("runs", "--json", env={"CAISSON_URL": "http://127.0.0.1:9"})
    assert (elsewhere.code, "no API key" in elsewhere.stderr) == (exit_codes.USAGE, True)
    file.chmod(0o666)
    planted = caisson("exec", "true")
    assert (planted.code, "written by others" in planted.stderr) == (exit_codes.USAGE, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("exec",),
        ("exec", "true", "--env", "NOVALUE"),
        ("keys", "create", "ci"),
        ("tenants", "set", "acme", "--limit", "memory_mib=much"),
        ("nonsense",),
    ],
    ids=["no gateway known", "no command", "no value", "whose key", "not a number", "no such command"],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    env = {} if arguments == ("runs",) else {"CAISSON_URL": "http://127.0.0.1:9", "CAISSON_API_KEY": PLATFORM_KEY}
    ended = caisson(*arguments, env=env)
    assert (ended.code, ended.stdout) == (exit_codes.USAGE, "")


def test_foreign_text_cannot_act_on_the_report(api: FakeApi) -> None:
    api.scripted.append(
        problem(422, "invalid_input", "[red]\x1b]0;title\x07[/nonsense]", "steps.0\x1b[2J", "\x9b31m")
    )
    ended = caisson("exec", "true", api=api)
    assert "[red]␛]0;title␇[/nonsense]" in ended.stderr
    assert "\x1b" not in ended.stderr
    assert "\x9b" not in ended.stderr
