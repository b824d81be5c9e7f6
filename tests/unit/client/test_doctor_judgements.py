"""The doctor's judgements: from what was seen to what holds. A missing fact never passes."""

import pytest

from caisson.client.doctor.judging import (
    Finding,
    judge_environments,
    judge_identity,
    judge_outbound,
    judge_proxy,
    judge_search,
)
from caisson.client.doctor.probes import Facts, read_facts

API_KEY = "csn_0123456789abcdef01_" + "ab" * 32
GOOD_IDENTITY = """
uid=10001
gid=10001
groups=10001
CapInh=0000000000000000
CapPrm=0000000000000000
CapEff=0000000000000000
CapBnd=0000000000000000
CapAmb=0000000000000000
NoNewPrivs=1
Seccomp=2
workspace=/workspace
workspace_mode=700
workspace_owner=10001
"""


def failing(findings: list[Finding]) -> list[str]:
    return [finding.check for finding in findings if not finding.holds]


IDENTITIES: list[tuple[str, str, str, list[str]]] = [
    ("all is well", "", "", []),
    ("root", "uid=10001", "uid=0", ["tenant's own uid", "private workspace"]),
    ("the group of the host's staff", "groups=10001", "groups=10001 50", ["tenant's own uid"]),
    ("a shared gid", "gid=10001", "gid=100", ["tenant's own uid"]),
    ("one capability", "CapEff=0000000000000000", "CapEff=0000000000000400", ["no capabilities"]),
    ("one that may be taken", "CapPrm=0000000000000000", "CapPrm=0000000000000001", ["no capabilities"]),
    ("setuid programs work", "NoNewPrivs=1", "NoNewPrivs=0", ["no new privileges"]),
    ("no filter", "Seccomp=2", "Seccomp=0", ["seccomp filter"]),
    ("strict mode is not our filter", "Seccomp=2", "Seccomp=1", ["seccomp filter"]),
    ("others may look in", "workspace_mode=700", "workspace_mode=755", ["private workspace"]),
    ("it belongs to somebody else", "workspace_owner=10001", "workspace_owner=0", ["private workspace"]),
    ("a fact is missing", "Seccomp=2\n", "", ["seccomp filter"]),
    ("a fact is there twice", "NoNewPrivs=1", "NoNewPrivs=1\nNoNewPrivs=1", ["no new privileges"]),
]


@pytest.mark.parametrize(
    ("seen", "instead", "failed"), [row[1:] for row in IDENTITIES], ids=[row[0] for row in IDENTITIES]
)
def test_who_a_command_is_and_what_it_may(seen: str, instead: str, failed: list[str]) -> None:
    assert failing(judge_identity(read_facts(GOOD_IDENTITY.replace(seen, instead)))) == failed


def test_nothing_seen_is_nothing_that_holds() -> None:
    findings = [
        *judge_identity({}),
        judge_environments({}, api_key=API_KEY),
        *judge_search({}, nonce="n", workspace="", own_uid=-1, their_uid=10002),
        judge_outbound({}, "1.1.1.1:443", "public", control="127.0.0.1:9191"),
        judge_proxy({}),
    ]
    assert not any(finding.holds for finding in findings)


SECRETS = [
    "API_TOKEN=x",
    "MY_PASSWORD=x",
    "NATS_SECRET=x",
    "AWS_ACCESS_KEY_ID=x",
    "SSH_PRIVATE=x",
    "OPENAI_API_KEY=x",
    "SIGNING_KEY=x",
    f"NOTE={API_KEY}",
    f"NOTE={'ab' * 32}",
    "NOTE=sk-abcdefghijklmnopqrstuvwx",
    "NOTE=ghp_abcdefghijklmnopqrstuvwxyz0123",
    "NOTE=AKIAABCDEFGHIJKLMNOP",
    "NOTE=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    "NOTE=-----BEGIN OPENSSH PRIVATE KEY-----",
    "DATABASE_URL=postgresql://user:pass@host/db",
    "HEADER=Bearer abcdefgh12345678",
]
HARMLESS = [
    "TENANT_ID=acme",
    "REQUEST_ID=req_01k2",
    "API_HOST=http://127.0.0.1:9191",
    "PATH=/usr/bin:/bin",
    "KEYBOARD=de",
    "MONKEY=1",
    "URL=https://example.com/a:b@c",
]


@pytest.mark.parametrize("line", SECRETS)
def test_what_looks_like_a_secret_is_found_and_not_repeated(line: str) -> None:
    name, _, value = line.partition("=")
    finding = judge_environments(read_facts(f"read=/proc/2/environ\nvariable={line}"), api_key=API_KEY)
    assert (finding.holds, finding.reason) == (False, f"looks like one: {name}")
    assert value == "x" or value not in finding.reason


def test_the_usual_variables_are_no_secrets() -> None:
    facts = read_facts("read=/proc/2/environ\n" + "".join(f"variable={line}\n" for line in HARMLESS))
    assert judge_environments(facts, api_key=API_KEY).holds


SEARCHES: list[tuple[str, str, list[str]]] = [
    ("only its own file", "", []),
    ("its own file through its own processes", "found=/proc/12/cwd/n\nfound=/proc/12/root/workspace/n\n", []),
    ("the other's file by its path", "found=/srv/tenants/10002/run_b/n\n", ["other tenant's files"]),
    ("the other's folder by its name", "found=/srv/tenants/10002/run_b\n", ["other tenant's files"]),
    ("the other's file through a process", "found=/proc/12/root/srv/run_b/n\n", ["other tenant's files"]),
    ("the other's content in its own place", "content=theirs n\n", ["other tenant's files"]),
    ("the other's process", "seen=/proc/77\n", ["other tenant's processes"]),
    ("the other's uid", "process=10002\n", ["other tenant's processes"]),
]


@pytest.mark.parametrize(("more", "failed"), [row[1:] for row in SEARCHES], ids=[row[0] for row in SEARCHES])
def test_what_was_found_of_another_tenant(more: str, failed: list[str]) -> None:
    facts = read_facts(f"found=/workspace/n\ncontent=mine n\nprocess=0\nprocess=10001\n{more}searched=yes\n")
    found = judge_search(facts, nonce="n", workspace="/workspace", own_uid=10001, their_uid=10002)
    assert failing(found) == failed


def test_a_search_that_does_not_find_its_own_file_proves_nothing() -> None:
    blind = read_facts("process=10001\nsearched=yes\n")
    unfinished = read_facts("found=/workspace/n\nprocess=10001\n")
    for facts in (blind, unfinished):
        found = judge_search(facts, nonce="n", workspace="/workspace", own_uid=10001, their_uid=10002)
        assert failing(found) == ["other tenant's files"]


def test_two_tenants_with_one_uid_are_not_apart() -> None:
    facts = read_facts("found=/workspace/n\nprocess=10001\nsearched=yes\n")
    found = judge_search(facts, nonce="n", workspace="/workspace", own_uid=10001, their_uid=10001)
    assert failing(found) == ["other tenant's processes"]


OUTBOUND: list[tuple[str, str, bool]] = [
    ("refused at once", "proxy:1=0 3\ntarget:1=1 12\n", True),
    ("accepted", "proxy:1=0 3\ntarget:1=0 12\n", False),
    ("refused late", "proxy:1=0 3\ntarget:1=1 1500\n", False),
    ("swallowed until the time-out", "proxy:1=0 3\ntarget:1=124 5000\n", False),
    ("no program to try with", "proxy:1=127 1\ntarget:1=127 1\n", False),
    ("not even the proxy was reached", "proxy:1=1 1\ntarget:1=1 1\n", False),
]


@pytest.mark.parametrize(("seen", "holds"), [row[1:] for row in OUTBOUND], ids=[row[0] for row in OUTBOUND])
def test_getting_out(seen: str, *, holds: bool) -> None:
    assert judge_outbound(read_facts(seen), "target:1", "somewhere", control="proxy:1").holds is holds


@pytest.mark.parametrize(
    ("answer", "holds"),
    [("HTTP/1.1 404 Not Found", True), ("HTTP/1.1 403 Forbidden", True), ("", False), ("SSH-2.0-OpenSSH", False)],
)
def test_any_http_status_is_an_answer_of_the_proxy(answer: str, *, holds: bool) -> None:
    facts: Facts = {"answer": [answer]}
    assert judge_proxy(facts).holds is holds
