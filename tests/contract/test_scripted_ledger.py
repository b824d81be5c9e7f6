"""The scripted ledger, which the runner's tests trust, answers a worker as the gateway's does."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

import asyncpg
import httpx
import pytest

from caisson.common.errors import LeaseLost
from caisson.common.leases import Grant, Verdict
from caisson.common.outcome import Exited
from caisson.stack.nats import EmbeddedNats
from tests.support.gateway import create_database, lay_ground, open_ledger, running
from tests.support.product import submit
from tests.support.scripted_ledger import ScriptedLedger, grant, scripted_ledger
from tests.support.worker import Worker, connected_worker


class Peer(Protocol):
    """A ledger with what stands behind it."""

    async def queue(self, *commands: str) -> None:
        """Let there be a run to claim."""

    async def cancel(self, granted: Grant) -> None:
        """Cancel a granted run."""

    async def take_away(self, granted: Grant) -> None:
        """Let a lease be lost."""


@dataclass
class Scripted:
    """The fake."""

    ledger: ScriptedLedger

    async def queue(self, *commands: str) -> None:
        self.ledger.queue.append(grant(*commands))

    async def cancel(self, granted: Grant) -> None:
        self.ledger.verdicts[granted.run_id] = Verdict.CANCEL

    async def take_away(self, granted: Grant) -> None:
        self.ledger.verdicts[granted.run_id] = Verdict.LOST
        for verb in ("start_step", "finish_step", "finish_run", "release"):
            self.ledger.script[verb].append(LeaseLost("gone"))


@dataclass
class Real:
    """The gateway."""

    product: httpx.AsyncClient
    database: asyncpg.Pool

    async def queue(self, *commands: str) -> None:
        await submit(self.product, *commands)

    async def cancel(self, granted: Grant) -> None:
        assert (await self.product.post(f"/v1/runs/{granted.run_id}/cancel")).status_code == 202

    async def take_away(self, granted: Grant) -> None:
        await self.database.execute(
            "UPDATE ledger.runs SET lease_expires_at = now() WHERE run_id = $1", granted.run_id
        )


@pytest.fixture
async def scripted(nats: EmbeddedNats) -> AsyncIterator[tuple[Peer, Worker]]:
    async with (
        scripted_ledger(nats.url, nats.passwords["gateway"]) as ledger,
        connected_worker(nats) as worker,
    ):
        yield Scripted(ledger), worker


@pytest.fixture
async def real(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Peer, Worker]]:
    ground = await lay_ground(tmp_path_factory.mktemp("contract"), await create_database(postgres_url))
    gateway = ground.gateway()
    async with (
        running(gateway),
        ground.client(gateway, tenant="acme") as product,
        open_ledger(ground.database_url) as database,
        connected_worker(ground.nats) as worker,
    ):
        yield Real(product, database), worker
    await ground.nats.stop()


async def hold(peer: Peer, worker: Worker) -> None:
    """Do as a runner does, and rely on what its tests rely on."""
    assert await worker.claim(4) == []
    await peer.queue("one", "two")
    granted = await worker.take()
    assert [(step.index, step.command, step.timeout_s) for step in granted.steps] == [(0, "one", 60), (1, "two", 60)]
    assert (granted.fence, granted.attempt, granted.resumed_after, granted.workspace_lost) == (1, 1, 0, False)
    assert (granted.uid, granted.lease_s, granted.on_failure, granted.env) == (10_000, 15, "stop", {})
    assert granted.request_id
    assert await worker.renew(granted) == {granted.run_id: Verdict.CONTINUE}
    assert await worker.start(granted) is Verdict.CONTINUE
    for _ in range(2):
        assert await worker.finish(granted, start_next=True) is Verdict.CONTINUE
    assert await worker.finish(granted, 1, outcome=Exited(exit_code=1), finish_run=True) is Verdict.CONTINUE
    assert await worker.finish_run(granted) is Verdict.CONTINUE

    await peer.queue("held")
    cancelled = await worker.take()
    await worker.start(cancelled)
    await peer.cancel(cancelled)
    assert await worker.renew(cancelled) == {cancelled.run_id: Verdict.CANCEL}

    await peer.queue("away")
    taken = await worker.take()
    await worker.start(taken)
    await peer.take_away(taken)
    assert await worker.renew(taken) == {taken.run_id: Verdict.LOST}
    for write in (worker.start, worker.finish, worker.finish_run, worker.release):
        with pytest.raises(LeaseLost):
            await write(taken)

    await peer.queue("given back")
    await worker.release(await worker.take())


async def test_the_scripted_ledger_keeps_to_the_contract(scripted: tuple[Peer, Worker]) -> None:
    await hold(*scripted)


async def test_the_gateways_ledger_keeps_to_the_contract(real: tuple[Peer, Worker]) -> None:
    await hold(*real)
