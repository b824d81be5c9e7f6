"""Carries out the smoke test: two throw-away tenants, a few runs, and what is found.

Invariant: whatever cannot be carried out is a finding that does not hold, and nothing is left running.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

import httpx

from caisson.client.client import Client
from caisson.client.doctor import probes
from caisson.client.doctor.judging import (
    Finding,
    judge_environments,
    judge_identity,
    judge_outbound,
    judge_proxy,
    judge_search,
)
from caisson.client.doctor.probes import Facts, command, read_facts
from caisson.client.errors import CaissonError
from caisson.client.models import Run, Step

TENANT_A, TENANT_B, USER = "caisson-doctor-a", "caisson-doctor-b", "doctor"
HOLD_S = 120
_PROXY_ADDRESS = "127.0.0.1:9191"
_WORKER_WITHIN_S = 30.0
_PROBES_WITHIN_S = 90.0


class Examination:
    """One examination of one stack."""

    def __init__(self, client: Client, *, api_key: str, proxy_url: str | None) -> None:
        self._a = client.for_tenant(TENANT_A, USER)
        self._b = client.for_tenant(TENANT_B, USER)
        self._api_key = api_key
        self._proxy_url = proxy_url
        self._nonce = f"caisson-doctor-{secrets.token_hex(8)}"
        self._targets = outbound_targets(client.url)

    async def findings(self) -> AsyncGenerator[Finding, None]:
        """Yield finding after finding; the first that makes others impossible ends the examination."""
        gateway = await self._gateway()
        yield gateway
        if not gateway.holds:
            return
        if self._proxy_url is not None:
            yield await self._proxy(self._proxy_url)
        try:
            async with self._holding() as (their_run, their_uid):
                run = await self._probe(their_run, their_uid)
                for finding in self._judge(run, their_uid):
                    yield finding
                yield await self._still_held(their_run)
        except CaissonError as error:
            yield Finding(check="sandbox", holds=False, reason=str(error))
        except CannotExamine as error:
            yield Finding(check="sandbox", holds=False, reason=str(error))

    async def _gateway(self) -> Finding:
        try:
            checks = await self._a.ready()
        except CaissonError as error:
            return Finding(check="gateway", holds=False, reason=str(error))
        return Finding(check="gateway", holds=True, reason=f"ready: {', '.join(checks) or 'yes'}")

    async def _proxy(self, url: str) -> Finding:
        try:
            async with httpx.AsyncClient(timeout=5) as http:
                response = await http.get(f"{url.rstrip('/')}/readyz")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Finding(check="proxy", holds=False, reason=f"{url}: {str(error) or type(error).__name__}")
        return Finding(check="proxy", holds=response.is_success, reason=f"/readyz answers {response.status_code}")

    @asynccontextmanager
    async def _holding(self) -> AsyncGenerator[tuple[Run, int], None]:
        """Let tenant B open its workspace to everybody and hold it, and end that in any case."""
        run = await self._b.create_run(
            commands=[
                command(probes.HOLD_OPEN, {"NONCE": self._nonce}),
                command(probes.HOLD, {"NONCE": self._nonce, "HOLD_S": str(HOLD_S)}),
            ],
            metadata={"doctor": "holds its workspace open"},
        )
        try:
            first = await self._first_step(run.id)
            facts = facts_of(first)
            uid = "".join(facts.get("uid", []))
            if facts.get("holding") != [f"theirs {self._nonce}"] or not uid.isdigit():
                raise CannotExamine(f"the first command could not hold a workspace: {_told(first)}")
            yield run, int(uid)
        finally:
            await self._b.cancel(run.id)

    async def _first_step(self, run_id: str) -> Step:
        try:
            async with asyncio.timeout(_WORKER_WITHIN_S), aclosing(self._b.events(run_id)) as events:
                async for event in events:
                    if event.type == "step.finished":
                        break
        except TimeoutError:
            raise CannotExamine(f"no worker ran a first command within {_WORKER_WITHIN_S:g} s") from None
        return (await self._b.get_run(run_id)).steps[0]

    async def _probe(self, their_run: Run, their_uid: int) -> Run:
        hunt = {
            "NONCE": self._nonce,
            "THEIR_RUN": their_run.id,
            "THEIR_UID": str(their_uid),
            "SEARCH_LIMIT_S": str(probes.SEARCH_LIMIT_S),
        }
        targets = " ".join((_PROXY_ADDRESS, *self._targets))
        run = await self._a.create_run(
            commands=[
                command(probes.IDENTITY),
                command(probes.ENVIRONMENTS),
                command(probes.SEARCH, hunt),
                command(probes.OUTBOUND, {"TARGETS": targets}),
                command(probes.PROXY),
            ],
            on_failure="continue",
            metadata={"doctor": "looks around"},
        )
        try:
            return await self._a.wait(run.id, timeout_s=_PROBES_WITHIN_S)
        except BaseException:
            await self._a.cancel(run.id)
            raise

    def _judge(self, run: Run, their_uid: int) -> list[Finding]:
        identity, environments, search, outbound, proxy = (facts_of(step) for step in run.steps)
        uid, workspace = identity.get("uid", [""])[0], identity.get("workspace", [""])[0]
        return [
            judge_environments(environments, api_key=self._api_key),
            *judge_identity(identity),
            *judge_search(
                search,
                nonce=self._nonce,
                workspace=workspace,
                own_uid=int(uid) if uid.isdigit() else -1,
                their_uid=their_uid,
            ),
            *(
                judge_outbound(outbound, target, told, control=_PROXY_ADDRESS)
                for target, told in self._targets.items()
            ),
            judge_proxy(proxy),
        ]

    async def _still_held(self, run: Run) -> Finding:
        """The search proves something only if there was something to find until its end."""
        status = (await self._b.get_run(run.id)).status
        return Finding(
            check="other tenant was there", holds=status == "running", reason=f"its run was {status} until the end"
        )


class CannotExamine(Exception):
    """The stack does not do what the examination needs."""


def outbound_targets(gateway_url: httpx.URL) -> dict[str, str]:
    """Return the addresses that no sandbox may reach, each with what it is."""
    port = gateway_url.port or (443 if gateway_url.scheme == "https" else 80)
    targets = {
        "1.1.1.1:443": "public address",
        "2606:4700:4700::1111:443": "public address, IPv6",
        "169.254.169.254:80": "metadata address",
        f"127.0.0.1:{port}": "gateway's own port",
        "example.com:443": "a DNS name",
    }
    if gateway_url.host not in {"127.0.0.1", "localhost", "::1"}:
        targets[f"{gateway_url.host}:{port}"] = "the gateway"
    return targets


def facts_of(step: Step) -> Facts:
    """Return what a probe printed; nothing where it did not come to its end."""
    return read_facts(_text(step)) if step.outcome is not None and step.outcome.kind == "exited" else {}


def _told(step: Step) -> str:
    if step.outcome is None:
        return step.status
    return " ".join(filter(None, (step.outcome.kind, step.outcome.guard, step.outcome.reason)))


def _text(step: Step) -> str:
    return step.stdout.text if step.stdout is not None else ""
