"""A hostile message to the memory service gets one typed answer and harms nobody."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from caisson.common import subjects
from caisson.common.errors import all_errors
from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground
from tests.support.hostile import VALID, mutated
from tests.support.memory_process import asking

CALLER = {"tenant_id": "hostile", "user_id": "ana", "scopes": ["team:a"]}
MESSAGES: dict[subjects.Subject, dict[str, Any]] = {
    subjects.MEMORY_REMEMBER: {"memories": [VALID["POST /v1/memories"]]},
    subjects.MEMORY_GET: {"id": "mem_x", "as_of": "2026-01-01T00:00:00Z"},
    subjects.MEMORY_LIST: {
        "limit": 5,
        "before": "mem_x@2026-01-01T00:00:00+00:00",
        "layer": "semantic",
        "subject": "x",
    },
    subjects.MEMORY_PATCH: {"id": "mem_x", **VALID["PATCH /v1/memories/{memory_id}"]},
    subjects.MEMORY_DELETE: {"id": "mem_x"},
    subjects.MEMORY_RECEIPT: {"id": "job_x"},
    subjects.MEMORY_HISTORY: {"id": "mem_x", "as_of": "2026-01-01T00:00:00Z"},
    subjects.MEMORY_SEARCH: VALID["POST /v1/memories/search"],
    subjects.MEMORY_CONTEXT: VALID["POST /v1/memories/context"],
    subjects.MEMORY_FEEDBACK: VALID["POST /v1/memories/feedback"],
    subjects.MEMORY_CONSOLIDATE: {"dry_run": True},
    subjects.MEMORY_DISTIL: {**VALID["POST /v1/memories/distil"], "resume": "job_x"},
    subjects.MEMORY_ERASE_USER: {"user_id": "ana", "resume": "job_x", "limit": 5},
    subjects.MEMORY_EXPORT_USER: {"user_id": "ana", "resume": "mem_x", "limit": 5},
    subjects.MEMORY_USAGE: {},
    subjects.MEMORY_RECONCILE: {},
}
ODD = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe",
    b'"x"',
    b"[" * 100_000,
    b'{"caller":' * 5_000,
    b'{"caller": {}}',
    b'{"caller": {"tenant_id": "", "user_id": "a", "scopes": []}}',
    b'{"caller": {"tenant_id": "a\\u0000", "user_id": "a", "scopes": []}}',
    b'{"caller": {"tenant_id": "a", "user_id": "\\ud83d", "scopes": []}}',
    b'{"caller": {"tenant_id": "a", "user_id": "a", "scopes": [""]}}',
    b'{"caller": {"tenant_id": "a", "user_id": "a", "scopes": "tenant"}}',
    b'{"caller": {"tenant_id": ["a", "b"], "user_id": "a", "scopes": []}}',
    json.dumps({"caller": CALLER, "x" * 100_000: 1}).encode(),
    json.dumps({"caller": CALLER | {"is_platform": True}}).encode(),
]


def drawn(valid: dict[str, Any]) -> list[Any]:
    """Return mutations of a message, always the same ones."""
    messages: list[Any] = []

    @settings(
        max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(mutated(valid))
    def draw(message: Any) -> None:
        messages.append(message)

    draw()
    return messages


def test_every_subject_is_here() -> None:
    declared = {value for name, value in vars(subjects).items() if name.startswith("MEMORY_")}
    assert declared == MESSAGES.keys()


@pytest.mark.parametrize("subject", MESSAGES, ids=[subject.verb for subject in MESSAGES])
async def test_a_hostile_message_gets_one_typed_answer(
    ground: Ground, memory: ServiceProcess, subject: subjects.Subject
) -> None:
    async with asking(ground.nats) as gateway:

        async def send(body: bytes) -> dict[str, Any]:
            answer = await gateway.bus.connection.request(str(subject), body, timeout=10)
            told: dict[str, Any] = json.loads(answer.data)
            assert len(told) == 1, told
            assert len(answer.data) < 100_000
            return told

        for body in ODD:
            refused = (await send(body))["error"]
            assert refused["code"] in {"invalid_input", "invalid_id"}, (body[:80], refused)
            assert refused["fields"], "it says what is not valid"

        for message in drawn({"caller": CALLER, **MESSAGES[subject]}):
            told = await send(json.dumps(message).encode())
            code = told.get("error", {}).get("code")
            assert code is None or (code in all_errors() and code != "internal"), (message, told)
    assert "rpc.failed" not in (ground.folder / "memory" / "memory.log").read_text()
    async with httpx.AsyncClient(base_url=memory.addresses["admin"], trust_env=False) as http:
        ready = await http.get("/readyz")
        assert ready.json()["status"] == "ok", ready.text
