"""Runs as the fake gateway plays them: what a command does is scripted, its events and its end follow the API."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

FINAL = {"succeeded", "failed", "cancelled"}


@dataclass
class Behaviour:
    """What a command does. One that `holds` goes on until it is cancelled, one that is `deaf` even then.

    One that is `watched` waits for a reader of events; one that `loses_worker` runs twice after that.
    """

    outcome: dict[str, Any] = field(default_factory=lambda: {"kind": "exited", "exit_code": 0})
    stdout: bytes = b""
    stderr: bytes = b""
    live: tuple[tuple[str, int, str], ...] = ()
    text: str | None = None
    truncated: bool = False
    lossy: bool = False
    holds: bool = False
    deaf: bool = False
    watched: bool = False
    loses_worker: bool = False
    security: dict[str, Any] | None = None


class FakeRun:
    """One run, played by a task."""

    def __init__(self, number: int, body: dict[str, Any], tenant: str, user: str) -> None:
        self.id = f"run_{number:026d}"
        self.body = body
        self.commands = [step["bash"]["command"] for step in body["steps"]]
        self.outputs: dict[tuple[str, str], bytes] = {}
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.readers: list[asyncio.Queue[bytes]] = []
        self.changed = asyncio.Condition()
        self.cancelled = asyncio.Event()
        self.watched = asyncio.Event()
        self.document: dict[str, Any] = {
            "id": self.id,
            "session_id": body.get("session_id"),
            "tenant_id": tenant,
            "user_id": user,
            "status": "queued",
            "created_at": now(),
            "started_at": None,
            "finished_at": None,
            "attempt": 1,
            "version": 1,
            "error": None,
            "steps": [_pending(f"stp_{number}_{index}", index) for index in range(len(body["steps"]))],
            "metadata": body.get("metadata", {}),
            "from_a_newer_gateway": True,
        }

    @property
    def final(self) -> bool:
        return self.document["status"] in FINAL

    async def tell(self, kind: str, data: dict[str, Any]) -> None:
        self.events.append((kind, data))
        async with self.changed:
            self.changed.notify_all()

    async def tell_live(self, data: dict[str, Any]) -> None:
        for reader in self.readers:
            reader.put_nowait(frame("step.output", data))
        async with self.changed:
            self.changed.notify_all()

    async def play(self, behaviours: dict[str, Behaviour]) -> None:
        self.document.update(status="running", started_at=now())
        await self.tell("run.started", {"attempt": 1})
        failed = None
        for step, command in zip(self.document["steps"], self.commands, strict=True):
            if failed and self.body.get("on_failure") != "continue":
                step.update(status="cancelled", outcome={"kind": "cancelled", "reason": "the run ended before it"})
                continue
            await self._play_step(step, behaviours.get(command, Behaviour(stdout=f"{command}\n".encode())))
            failed = failed or (step["outcome"] if step["status"] != "succeeded" else None)
        if self.cancelled.is_set():
            self.document.update(status="cancelled", error={"code": "cancelled", "detail": "cancelled by the caller"})
        elif failed:
            self.document.update(status="failed", error={"code": "step_failed", "detail": f"a step {failed['kind']}"})
        else:
            self.document.update(status="succeeded")
        self.document["finished_at"] = now()
        await self.tell("run.finished", {"status": self.document["status"], "error": self.document["error"]})

    async def _play_step(self, step: dict[str, Any], behaviour: Behaviour) -> None:
        step.update(status="running", started_at=now())
        await self.tell("step.started", {"step_id": step["id"]})
        if behaviour.watched:
            await self.watched.wait()
        if behaviour.loses_worker:
            await self._tell_live(step, behaviour)
            await self.tell("run.requeued", {"attempt": 2})
            await self.tell("step.started", {"step_id": step["id"]})
        await self._tell_live(step, behaviour)
        if behaviour.security:
            await self.tell(f"security.{behaviour.security['kind']}", behaviour.security)
        if behaviour.holds:
            await self.cancelled.wait()
        if behaviour.deaf:
            await asyncio.Event().wait()
        outcome = {"kind": "cancelled"} if behaviour.holds else behaviour.outcome
        for name, data in (("stdout", behaviour.stdout), ("stderr", behaviour.stderr)):
            self.outputs[step["id"], name] = data
            text = data.decode(errors="replace") if behaviour.text is None else behaviour.text
            step[name] = {
                "text": text,
                "bytes": len(data),
                "truncated": behaviour.truncated and bool(data),
                "lossy": behaviour.lossy,
            }
        step.update(status=_status(outcome), outcome=outcome, finished_at=now(), duration_ms=12.4)
        told = {key: step[key] for key in ("status", "outcome", "duration_ms")}
        for name in ("stdout", "stderr"):
            told[name] = {key: step[name][key] for key in ("bytes", "truncated", "lossy")}
        await self.tell("step.finished", {"step_id": step["id"], **told})

    async def _tell_live(self, step: dict[str, Any], behaviour: Behaviour) -> None:
        for stream, offset, text in behaviour.live:
            await self.tell_live({"step_id": step["id"], "stream": stream, "offset": offset, "text": text})

    async def frames(self, after: int) -> AsyncIterator[bytes]:
        live: asyncio.Queue[bytes] = asyncio.Queue()
        self.readers.append(live)
        self.watched.set()
        yield b": caisson\n\n"
        told = after
        while True:
            while not live.empty():
                yield live.get_nowait()
            for kind, data in self.events[told:]:
                told += 1
                yield durable(told, kind, run_id=self.id, **data)
                if kind == "run.finished":
                    return
            async with self.changed:
                if live.empty() and len(self.events) == told:
                    await self.changed.wait()


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def frame(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def durable(seq: int, kind: str, /, **data: Any) -> bytes:
    return f"id: {seq}\n".encode() + frame(kind, data)


def _pending(step_id: str, index: int) -> dict[str, Any]:
    empty = {"outcome": None, "stdout": None, "stderr": None, "started_at": None, "finished_at": None}
    return {"id": step_id, "index": index, "kind": "bash", "status": "pending", **empty, "duration_ms": None}


def _status(outcome: dict[str, Any]) -> str:
    if outcome == {"kind": "exited", "exit_code": 0}:
        return "succeeded"
    return {"cancelled": "cancelled", "lost": "unknown"}.get(outcome["kind"], "failed")
