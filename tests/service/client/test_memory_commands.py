"""What `caisson memory` sends for its options, and what it refuses to send."""

from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from caisson.client import exit_codes
from tests.support.command_line import caisson
from tests.support.fake_api import FakeApi

MEMORY = {
    "id": "mem_1",
    "external_id": None,
    "layer": "semantic",
    "status": "active",
    "text": "tea is at five",
    "scopes": ["user:cli"],
    "subject": None,
    "attribute": None,
    "importance": 0.5,
    "confidence": 1.0,
    "trust": 1.0,
    "q": 0.0,
    "visits": 0,
    "valid_from": "2026-03-01T00:00:00.000Z",
    "valid_to": None,
    "expires_at": None,
    "tags": [],
    "metadata": {},
    "provenance": {"kind": "person", "run_id": None, "session_id": None, "source": None},
    "sources": [],
    "superseded_by": None,
    "version": 2,
    "created_at": "2026-03-01T00:00:00.000Z",
    "updated_at": "2026-03-01T00:00:00.000Z",
}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ADDED: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--valid-from", "2026-03-01T10:00:00+05:30"), {"valid_from": "2026-03-01T04:30:00.000Z"}),
    (("--valid-to", "2026-03-01T10:00:00.250Z"), {"valid_to": "2026-03-01T10:00:00.250Z"}),
    (("--expires", "9998-12-31 10:00Z"), {"expires_at": "9998-12-31T10:00:00.000Z"}),
    (("--confidence", "0.5", "--importance", "1"), {"confidence": 0.5, "importance": 1.0}),
    (("--run", "run_1", "--outcome", "ok"), {"provenance": {"kind": "run", "run_id": "run_1"}, "outcome": "ok"}),
    (("--kind", "import", "--source", "wiki/tea"), {"provenance": {"kind": "import", "source": "wiki/tea"}}),
    (("--kind", "tool", "--run", "run_1"), {"provenance": {"kind": "tool", "run_id": "run_1"}}),
    (
        ("--layer", "session", "--session", "ses_1"),
        {"layer": "session", "provenance": {"session_id": "ses_1"}},
    ),
    (
        ("--in", "tenant", "--subject", "tea", "--attribute", "time", "--id", "doc 1"),
        {"scopes": ["tenant"], "subject": "tea", "attribute": "time", "external_id": "doc 1"},
    ),
    (
        ("--tag", "a", "--tag", "b", "--metadata", '{"n": 1}', "--confirmed"),
        {"tags": ["a", "b"], "metadata": {"n": 1}, "confirmations": 1},
    ),
]


@pytest.mark.parametrize(("options", "sent"), ADDED, ids=[options[0] for options, _ in ADDED])
def test_add_sends_what_is_given_and_nothing_else(
    api: FakeApi, options: tuple[str, ...], sent: dict[str, Any]
) -> None:
    api.scripted.append(JSONResponse({"status": "created", "id": "mem_1"}, 201))
    ended = caisson("memory", "add", "tea is at five", *options, api=api)
    assert (ended.code, ended.stdout) == (0, "created mem_1\n")
    assert api.seen("POST", "/v1/memories")[0].body == {"text": "tea is at five", **sent}


EDITED: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--no-expiry",), {"expires_at": None}),
    (
        ("--no-valid-to", "--expires", "2040-01-01T00:00Z"),
        {"valid_to": None, "expires_at": "2040-01-01T00:00:00.000Z"},
    ),
    (
        ("--valid-to", "2040-01-01T00:00Z", "--confidence", "0"),
        {"valid_to": "2040-01-01T00:00:00.000Z", "confidence": 0.0},
    ),
    (("--no-tags",), {"tags": []}),
    (("--tag", "a", "--version", "3"), {"tags": ["a"], "expected_version": 3}),
    (("--wake", "--text", "tea is at six"), {"status": "active", "text": "tea is at six"}),
]


@pytest.mark.parametrize(("options", "sent"), EDITED, ids=[options[0] for options, _ in EDITED])
def test_edit_sends_null_for_what_is_removed_alone(
    api: FakeApi, options: tuple[str, ...], sent: dict[str, Any]
) -> None:
    api.scripted.append(JSONResponse(MEMORY))
    ended = caisson("memory", "edit", "mem_1", *options, "--json", api=api)
    assert (ended.code, ended.document) == (0, MEMORY)
    assert api.seen("PATCH", "/v1/memories/mem_1")[0].body == sent


REFUSED: list[tuple[tuple[str, ...], str, str]] = [
    (("add", "tea", "--valid-from", "yesterday"), "--valid-from", "a word"),
    (("add", "tea", "--valid-to", "2026-02-30"), "--valid-to", "no day"),
    (("add", "tea", "--expires", ""), "--expires", "nothing"),
    (("search", "tea", "--as-of", "1772000000"), "--as-of", "seconds"),
    (("edit", "mem_1", "--expires", "2026-03-01T10:00+25:00"), "--expires", "no offset"),
]


@pytest.mark.parametrize(("arguments", "option", "reason"), REFUSED, ids=[row[2] for row in REFUSED])
def test_a_time_that_is_none_is_refused_with_an_example(
    api: FakeApi, arguments: tuple[str, ...], option: str, reason: str
) -> None:
    ended = caisson("memory", *arguments, api=api)
    assert (ended.code, api.requests) == (exit_codes.USAGE, []), reason
    assert option in ended.stderr
    assert "2026-03-01T10:00:00Z" in ended.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--no-expiry", "--expires", "2040-01-01"),
        ("--no-valid-to", "--valid-to", "2040-01-01"),
        ("--no-tags", "--tag", "a"),
        ("--version", "3"),
    ],
    ids=lambda options: options[0],
)
def test_an_edit_that_says_nothing_or_two_things_is_refused(api: FakeApi, options: tuple[str, ...]) -> None:
    ended = caisson("memory", "edit", "mem_1", *options, api=api)
    assert (ended.code, api.requests) == (exit_codes.USAGE, [])


def test_distil_tells_the_selection_the_stages_and_how_to_go_on(api: FakeApi, tmp_path: Path) -> None:
    told = {"job_id": "job_1", "selected": [], "stages": [{"stage": "merge", "in": 3}], "complete": False}
    done = {**told, "selected": ["the roof is flat"], "complete": True}
    file = tmp_path / "candidates.txt"
    file.write_text("the roof is flat\n\n  the gate is green \n")
    api.scripted.extend(JSONResponse(answer) for answer in (told, done, told))
    begun = caisson("memory", "distil", str(file), "--target", "1", api=api)
    assert (begun.code, begun.stdout) == (75, "")
    assert begun.stderr == '{"stage": "merge", "in": 3}\nnot finished: go on with --resume job_1\n'
    ended = caisson("memory", "distil", "--resume", "job_1", api=api)
    assert (ended.code, ended.stdout) == (0, "the roof is flat\n")
    piped = caisson("memory", "distil", "-", "--json", api=api, stdin="the roof is flat\n")
    assert (piped.code, piped.document) == (75, told)
    assert [request.body for request in api.seen("POST", "/v1/memories/distil")] == [
        {"candidates": ["the roof is flat", "the gate is green"], "target": 1},
        {"candidates": [], "resume": "job_1"},
        {"candidates": ["the roof is flat"]},
    ]


@pytest.mark.parametrize("arguments", [(), ("-", "--resume", "job_1"), ("missing.txt",), (".",)])
def test_distil_needs_candidates_or_a_job(api: FakeApi, arguments: tuple[str, ...]) -> None:
    ended = caisson("memory", "distil", *arguments, api=api)
    assert (ended.code, ended.stdout, api.requests) == (exit_codes.USAGE, "", [])
