"""Every operation of the API's own description, asked in ways that nobody asks on purpose."""

from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings

from caisson.stack.service_process import ServiceProcess
from tests.support.gateway import Ground
from tests.support.hostile import Hostile, Operation, hostile_requests, operations

EXAMPLES = 30
PLAN = {"steps": [{"bash": {"command": "true"}}]}
PROBLEM = {"type", "title", "status", "detail", "code"}


class Caller:
    """Sends hostile requests, and remembers every run that was accepted."""

    def __init__(self, ground: Ground, gateway: ServiceProcess, tenant: str) -> None:
        headers = {"Authorization": f"Bearer {ground.platform_key}", "Caisson-Tenant": tenant, "Caisson-User": "u-1"}
        self.client = httpx.Client(base_url=gateway.addresses["http"], headers=headers, timeout=2, trust_env=False)
        self.tenant = tenant
        self.accepted: set[str] = set()
        finished = self.make("/v1/runs", PLAN)
        self.client.post(f"/v1/runs/{finished}/cancel")
        self.known = {
            "run_id": finished,
            "session_id": self.make("/v1/sessions", {}),
            "tenant_id": tenant,
            "key_id": self.make("/v1/keys", {"name": "k"}),
            "upstream": "metrics",
            "memory_id": self.make("/v1/memories", {"text": "the gate is blue"}),
            "user_id": "u-2",
        }
        doomed = self.make("/v1/memories", {"text": "the gate was red"})
        self.known["receipt_id"] = str(self.client.delete(f"/v1/memories/{doomed}").json()["id"])

    def make(self, path: str, body: dict[str, Any]) -> str:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return self._noted(answer)

    def send(self, hostile: Hostile) -> None:
        headers = {**dict(self.client.headers.raw), **hostile.headers}
        try:
            answer = self.client.request(hostile.method, hostile.target, headers=headers, content=hostile.body)
        except httpx.ReadTimeout:
            assert hostile.target == "/v1/exec", "nothing else waits: what was accepted here has no worker"
            return
        assert answer.status_code < 500, (answer.status_code, answer.text)
        if answer.is_client_error:
            assert answer.headers["content-type"] == "application/problem+json", answer.text
            assert answer.json().keys() >= PROBLEM
        elif answer.status_code == 202:
            self._noted(answer)

    def _noted(self, answer: httpx.Response) -> str:
        told = answer.json()
        if "steps" in told and told["tenant_id"] == self.tenant:
            self.accepted.add(told["id"])
        return str(told["id"])

    def runs(self) -> dict[str, str]:
        """Return every run of the tenant with its status."""
        found: dict[str, str] = {}
        params: dict[str, str] | None = {}
        while params is not None:
            page = self.client.get("/v1/runs", params={"limit": "200", **params}).json()
            found |= {run["id"]: run["status"] for run in page["items"]}
            params = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
        return found


def probe(operation: Operation, caller: Caller) -> None:
    @settings(
        max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(hostile_requests(operation, caller.known))
    def ask(hostile: Hostile) -> None:
        caller.send(hostile)

    ask()


def test_no_request_to_any_operation_fails_the_gateway_or_loses_a_run(
    ground: Ground, gateway: ServiceProcess, memory: ServiceProcess, tenant: str
) -> None:
    caller = Caller(ground, gateway, tenant)
    found = operations(caller.client.get("/openapi.json").json())
    assert len(found) >= 30
    for operation in found:
        caller.make("/v1/runs", PLAN)
        probe(operation, caller)
    assert caller.accepted <= caller.runs().keys()
    assert set(caller.runs().values()) <= {"queued", "cancelled"}
    assert caller.client.get("/readyz").json()["status"] == "ok"
    assert "api.failed" not in ground.log()
    caller.client.close()
