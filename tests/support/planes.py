"""A running plane as the stories see it: clients by tenant, and which runner works on what."""

from types import TracebackType
from typing import Self

import httpx

from caisson.client.client import Client
from caisson.client.models import ExecResult, RunEvent, SecurityEvent
from caisson.stack.stack import Stack
from tests.support.eventually import eventually


class Plane:
    """A stack with a client that holds its platform key."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._root = Client(stack.url, stack.platform_key)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._root.aclose()

    def client_of(self, tenant: str, user: str = "u-1") -> Client:
        """Return a client that acts for a tenant's user."""
        return self._root.for_tenant(tenant, user)

    @property
    def acme(self) -> Client:
        return self.client_of("acme")

    async def until(self, run_id: str, kind: str, *, index: int | None = None) -> RunEvent:
        """Return the first event of a kind (about the step with this index) in one of acme's runs."""
        async for event in self.acme.events(run_id):
            if event.type == kind and index in (None, event.data.get("index")):
                return event
        raise AssertionError(f"run {run_id} ended without {kind}")

    async def raw(self, method: str, path: str, *, tenant: str) -> httpx.Response:
        """Send a request as it is."""
        headers = {
            "Authorization": f"Bearer {self.stack.platform_key}",
            "Caisson-Tenant": tenant,
            "Caisson-User": "u",
        }
        async with httpx.AsyncClient(base_url=self.stack.url, headers=headers) as http:
            return await http.request(method, path)

    def place_of(self, worker: str) -> int:
        """Return the place of the runner process with this worker id."""
        names = [service.name for service in self.stack.services("runner")]
        return next(place for place, name in enumerate(names) if worker.startswith(f"{name}-"))

    async def security_events(self, step: ExecResult, kind: str) -> list[SecurityEvent]:
        """Return the security events of a kind about one run, once there are any."""

        async def found() -> list[SecurityEvent]:
            events = [event async for event in self.acme.security_events()]
            return [event for event in events if event.run_id == step.run_id and event.kind == kind]

        return await eventually(found)


def text(step: ExecResult) -> str:
    """Return what a step printed on stdout."""
    return step.stdout.text if step.stdout else ""
