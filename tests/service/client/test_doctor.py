"""The doctor where things are wrong: a box that isolates little, and gateways that cannot be examined."""

import subprocess
from pathlib import Path

import pytest

from caisson.client.doctor import probes
from caisson.client.doctor.judging import Finding, judge_environments, judge_identity, judge_outbound, judge_search
from caisson.client.doctor.probes import Facts, command, read_facts
from tests.support.command_line import caisson
from tests.support.fake_api import PLATFORM_KEY, TENANT_KEY, FakeApi

NONCE, THEIR_RUN = "caisson-doctor-1", "run_b"


@pytest.fixture
def poor_box(tmp_path: Path) -> list[str]:
    """A box that keeps its processes and its network to itself and gets everything else wrong."""
    workspace, theirs = tmp_path / "workspace", tmp_path / "srv" / "tenants" / "0" / THEIR_RUN
    workspace.mkdir(mode=0o755)
    theirs.mkdir(parents=True)
    (theirs / NONCE).write_text(f"theirs {NONCE}\n")
    mounts = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    links = [part for name in ("bin", "lib", "lib64") for part in ("--symlink", f"usr/{name}", f"/{name}")]
    own = ["--bind", str(workspace), "/workspace", "--bind", str(tmp_path / "srv"), "/srv"]
    variables = {"PATH": "/usr/bin", "WORKSPACE": "/workspace", "DEPLOY_TOKEN": "s3cret"}
    settings = [part for name, value in variables.items() for part in ("--setenv", name, value)]
    return ["bwrap", "--unshare-pid", "--unshare-net", *mounts, *links, *own, "--clearenv", *settings, "bash", "-c"]


def look(box: list[str], script: str, **variables: str) -> Facts:
    argv = [*box, command(script, variables)]
    done = subprocess.run(argv, env={"PATH": "/usr/bin"}, capture_output=True, text=True, timeout=60, check=False)
    return read_facts(done.stdout)


def failing(findings: list[Finding]) -> list[str]:
    return [finding.check for finding in findings if not finding.holds]


def test_a_box_that_isolates_little_does_not_pass(poor_box: list[str]) -> None:
    identity = judge_identity(look(poor_box, probes.IDENTITY))
    assert failing(identity) == [
        "tenant's own uid", "no capabilities", "seccomp filter", "private workspace"
    ]  # fmt: skip
    environments = judge_environments(look(poor_box, probes.ENVIRONMENTS), api_key=PLATFORM_KEY)
    assert environments.reason == "looks like one: DEPLOY_TOKEN"
    hunt = {"NONCE": NONCE, "THEIR_RUN": THEIR_RUN, "THEIR_UID": "0", "SEARCH_LIMIT_S": "20"}
    search = judge_search(
        look(poor_box, probes.SEARCH, **hunt), nonce=NONCE, workspace="/workspace", own_uid=0, their_uid=0
    )
    assert failing(search) == ["other tenant's files", "other tenant's processes"]
    assert f"/srv/tenants/0/{THEIR_RUN}/{NONCE}" in search[0].reason
    outbound = look(poor_box, probes.OUTBOUND, TARGETS="127.0.0.1:9191 1.1.1.1:443")
    finding = judge_outbound(outbound, "1.1.1.1:443", "public address", control="127.0.0.1:9191")
    assert "not even the proxy" in finding.reason


def test_a_stack_that_does_not_run_commands_is_not_healthy(api: FakeApi) -> None:
    ended = caisson("doctor", api=api)
    assert ended.code == 1
    assert ended.stdout.splitlines() == [
        "✓ gateway                        ready: bus, database",
        "✗ sandbox                        the first command could not hold a workspace: exited",
        "1 of 2 checks failed",
    ]
    assert [run.document["tenant_id"] for run in api.runs.values()] == ["caisson-doctor-b"]
    assert all(run.cancelled.is_set() for run in api.runs.values())


def test_a_tenant_s_key_cannot_examine(api: FakeApi) -> None:
    ended = caisson("doctor", "--json", api=api, env={"CAISSON_API_KEY": TENANT_KEY})
    assert ended.code == 1
    assert ended.document["ok"] is False
    assert "tenant_mismatch" in ended.document["checks"][-1]["reason"]


def test_a_gateway_that_is_not_ready_ends_the_examination(api: FakeApi) -> None:
    api.ready = False
    ended = caisson("doctor", "--json", api=api)
    assert (ended.code, [check["check"] for check in ended.document["checks"]]) == (1, ["gateway"])
