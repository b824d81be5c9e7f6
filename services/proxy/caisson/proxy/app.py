"""The composition root of the proxy: the only file that knows every part."""

import asyncio
import gc
import signal
import socket
from contextlib import suppress

from caisson.common.bus import Bus
from caisson.common.health import Health, Progress
from caisson.common.process import Process
from caisson.proxy import loops, metrics
from caisson.proxy.adapters.audits import Audits
from caisson.proxy.adapters.contexts import NatsContexts
from caisson.proxy.adapters.pool import Pool
from caisson.proxy.adapters.recorder import Recorder
from caisson.proxy.adapters.security import SecurityReports
from caisson.proxy.adapters.upstreams_file import UpstreamsFile
from caisson.proxy.adapters.vault import Vault
from caisson.proxy.api.channel import Channel
from caisson.proxy.api.reader import KnownHeads
from caisson.proxy.domain.gate import Gate
from caisson.proxy.settings import ProxySettings
from caisson.proxy.writes import Writes

_BACKLOG = 1024
_DRAIN_POLL_S = 0.05
_LAST_REPORTS_S = 3.0


async def serve(settings: ProxySettings) -> None:
    """Run the proxy until it is asked to stop."""
    declared = UpstreamsFile(settings.upstreams_file)
    vault = Vault(settings.private_key.get_secret_value())
    await Proxy(settings, declared, vault).serve()


class Proxy:
    """Every part of one proxy, wired."""

    def __init__(self, settings: ProxySettings, declared: UpstreamsFile, vault: Vault) -> None:
        self._settings = settings
        self._declared = declared
        self._process = Process()
        self._bus = Bus(settings, service="proxy", on_closed=self._process.fail)
        self._contexts = NatsContexts(self._bus)
        self._audits = Audits(self._bus)
        self._security = SecurityReports(self._bus)
        self._writes = Writes(asyncio.get_running_loop())
        self._pool = Pool(self._writes)
        self._channels: set[Channel] = set()
        self._known_heads = KnownHeads()
        self._gate = Gate(
            contexts=self._contexts,
            declared=declared,
            vault=vault,
            links=self._pool,
            recorder=Recorder(self._audits, self._security),
            channel_key=settings.channel_key.get_secret_value().encode(),
        )

    async def serve(self) -> None:
        """Start everything, and stop it in the opposite order."""
        settings, process = self._settings, self._process
        sweeping = Progress("the sweep over connections", limit_s=5)
        health = Health()
        health.add("bus", self._bus.check)
        health.add("contexts", self._contexts.check)
        health.add("sweep", sweeping.check)
        metrics.CONNECTIONS.set_function(lambda: len(self._channels))
        await process.listen("admin", health.application(), settings.admin_host, settings.admin_port)
        await self._bus.start()
        process.spawn("contexts", self._contexts.follow)
        process.spawn("audits", self._audits.run)
        process.spawn("security", self._security.run)
        process.spawn("sweep", lambda: loops.sweep(self._channels, self._pool.reap, sweeping))
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._declared.reload)
        server = await self._listen()
        gc.freeze()  # what start-up made stays: the collector need not look at it again
        process.announce(settings.admin_port_file)
        await process.run_until_stopped()
        server.close()
        await self._drain()
        await process.close()
        await self._report_the_last()
        await self._bus.stop()

    async def _listen(self) -> asyncio.Server:
        settings = self._settings
        listener = socket.create_server((settings.listen_host, settings.listen_port), backlog=_BACKLOG)
        host, port = listener.getsockname()[:2]
        self._process.addresses["proxy"] = f"{host}:{port}"
        loop = asyncio.get_running_loop()
        return await loop.create_server(
            lambda: Channel(self._gate, self._channels, self._known_heads, self._writes),
            sock=listener,
            backlog=_BACKLOG,
        )

    async def _drain(self) -> None:
        """Let what is going on end, within the drain time."""
        for channel in tuple(self._channels):
            channel.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain_s):
                while self._channels:  # noqa: ASYNC110 - each ends in its own way; nobody else asks
                    await asyncio.sleep(_DRAIN_POLL_S)
        for channel in tuple(self._channels):
            channel.cut()
        self._pool.close()
        await asyncio.sleep(0)

    async def _report_the_last(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_REPORTS_S):
                await self._security.flush()
                await self._audits.flush()
