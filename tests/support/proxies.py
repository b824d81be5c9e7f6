"""A real proxy process, the NATS it listens to, and a gateway's part of the conversation."""

import asyncio
import json
import os
import secrets
import signal
import sys
from pathlib import Path

import httpx
from nacl.encoding import Base64Encoder
from nacl.public import PrivateKey

from caisson.common.bus import Bus
from caisson.common.channel import write_preamble
from caisson.common.contexts import Credential, RunContext, SealedCredentials, seal
from caisson.common.errors import Unavailable
from caisson.common.ids import new_id
from caisson.common.leases import Done, RecordSecurity, SecurityEvent
from caisson.common.settings import ServiceSettings
from caisson.common.streams import declare
from caisson.common.subjects import CONTEXTS_STREAM, LEDGER_RECORD_SECURITY
from caisson.stack.nats import EmbeddedNats
from tests.support.eventually import eventually
from tests.support.raw_client import Reply, connected

CHANNEL_KEY = secrets.token_hex(32)
PRIVATE_KEY = PrivateKey.generate()
PUBLIC_KEY = PRIVATE_KEY.public_key.encode(Base64Encoder).decode()


class Gateway:
    """Writes contexts, and takes security reports unless told to be away."""

    def __init__(self, nats: EmbeddedNats) -> None:
        settings = ServiceSettings(nats_url=nats.url, nats_user="gateway", nats_password=nats.passwords["gateway"])
        self.bus = Bus(settings, service="gateway", on_closed=lambda: None)
        self.bus.serve(LEDGER_RECORD_SECURITY, RecordSecurity, self._record)
        self.calls: list[list[SecurityEvent]] = []
        self.is_away = False

    async def start(self) -> None:
        await self.bus.start()
        await self.redeclare()

    async def redeclare(self) -> None:
        """Make the streams, as a gateway does at start and after a wipe."""
        await declare(self.bus.jetstream)

    def events_of(self, context: RunContext) -> list[SecurityEvent]:
        return [event for call in self.calls for event in call if event.run_id == context.run_id]

    async def reported(self, context: RunContext, number: int, *, within_s: float = 5) -> list[SecurityEvent]:
        """Wait until so many events of a run were reported."""
        await eventually(lambda: len(self.events_of(context)) >= number, within_s=within_s)
        return self.events_of(context)

    async def put(self, context: RunContext) -> RunContext:
        await self.bus.jetstream.publish(
            f"$KV.contexts.{context.request_id}", context.model_dump_json().encode(), stream=CONTEXTS_STREAM
        )
        return context

    async def revoke(self, context: RunContext) -> None:
        headers = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}
        await self.bus.jetstream.publish(
            f"$KV.contexts.{context.request_id}", b"", stream=CONTEXTS_STREAM, headers=headers
        )

    async def _record(self, report: RecordSecurity) -> Done:
        self.calls.append(report.events)
        if self.is_away:
            raise Unavailable("away")
        return Done()


def a_context(
    tenant: str = "acme", *, ttl_s: float = 30, datasets: tuple[str, ...] = (), **sealed: SealedCredentials
) -> RunContext:
    """A run's context; keywords are credentials by upstream."""
    return RunContext(
        request_id=new_id("req"),
        tenant_id=tenant,
        user_id="u-1",
        session_id=None,
        run_id=new_id("run"),
        fence=1,
        ttl_s=ttl_s,
        datasets=list(datasets),
        credentials=sealed,
    )


def sealed(value: str, *, tenant: str = "acme", upstream: str = "metrics", kind: str = "bearer") -> str:
    credential = Credential.model_validate({"tenant_id": tenant, "upstream": upstream, "kind": kind, "value": value})
    return seal(credential, PUBLIC_KEY)


class ProxyProcess:
    """`python -m caisson.proxy` on free ports."""

    def __init__(self, nats: EmbeddedNats, folder: Path, upstreams: str, environment: dict[str, str]) -> None:
        self._nats = nats
        self._environment = environment
        self._ports_file = folder / "ports.json"
        self.upstreams_file = folder / "upstreams.yaml"
        self.upstreams_file.write_text(upstreams)
        self.log = folder / "proxy.log"
        self.process: asyncio.subprocess.Process | None = None
        self.addresses: dict[str, str] = {}

    async def start(self) -> None:
        self._ports_file.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "caisson.proxy", env=self._variables(), stderr=log
            )
        process = self.process
        await eventually(lambda: self._ports_file.exists() or process.returncode is not None, within_s=20)
        assert process.returncode is None, f"the proxy ended with {process.returncode}: {self.log.read_text()}"
        self.addresses = json.loads(self._ports_file.read_text())
        await eventually(self.is_ready, within_s=20)

    async def stop(self) -> int:
        if self.process is None:
            return 0
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self.process.wait(), 20)

    async def is_ready(self) -> bool:
        return not await self.failing()

    async def failing(self) -> dict[str, str]:
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = (await client.get(f"{self.addresses['admin']}/readyz")).json()
        failing: dict[str, str] = answer.get("failing", {})
        return failing

    async def counter(self, name: str, **labels: str) -> float:
        """The sum of a counter's samples that have these labels."""
        async with httpx.AsyncClient(trust_env=False) as client:
            lines = (await client.get(f"{self.addresses['admin']}/metrics")).text.splitlines()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if line.startswith((f"{name}{{", f"{name} ")) and all(label in line for label in wanted)
        )

    def peak_kib(self) -> int:
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0])

    def reset_peak(self) -> None:
        assert self.process is not None
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    async def ask(
        self,
        target: str,
        context: RunContext | None,
        *,
        method: str = "GET",
        headers: tuple[str, ...] = (),
        body: bytes = b"",
        chunks: bytes = b"",
    ) -> Reply:
        """Send one request on the channel of a run (without a run, on a bare connection).

        `body` is framed by its length, `chunks` stand as they are.
        """
        length = (f"Content-Length: {len(body)}",) if body else ()
        lines = (f"{method} {target} HTTP/1.1", "Host: proxy", *headers, *length, "", "")
        async with connected(self.addresses["proxy"]) as wire:
            preamble = write_preamble(context.request_id, CHANNEL_KEY.encode()) if context else b""
            await wire.send(preamble + "\r\n".join(lines).encode("latin-1") + body + chunks)
            return await wire.reply(to_head=method == "HEAD")

    def _variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PROXY_NATS_URL": self._nats.url,
            "PROXY_NATS_PASSWORD": self._nats.passwords["proxy"],
            "PROXY_LISTEN_PORT": "0",
            "PROXY_PRIVATE_KEY": PRIVATE_KEY.encode(Base64Encoder).decode(),
            "PROXY_CHANNEL_KEY": CHANNEL_KEY,
            "PROXY_UPSTREAMS_FILE": str(self.upstreams_file),
            "PROXY_ADMIN_PORT_FILE": str(self._ports_file),
        } | self._environment
