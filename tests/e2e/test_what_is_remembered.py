"""What people and agents of two tenants remember: apart, corrected, forgotten, and there again after a crash."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from caisson.client.errors import EmptyQuery, NotFound
from tests.support.command_line import Ended, caisson
from tests.support.planes import Plane


async def test_each_recalls_its_own_and_a_crash_loses_nothing(plane: Plane) -> None:
    tenants = [f"{name} {uuid4().hex[:6]}" for name in ("acme", "acme")]
    people = [plane.client_of(tenants[0], "ana"), plane.client_of(tenants[0], "ben")]
    people.append(plane.client_of(tenants[1], "ana"))
    for client, city in zip(people, ("Oslo", "Quito", "Lyon"), strict=True):
        await client.remember(f"I live in {city}", subject="me", attribute="home")
    team = people[0].with_scopes("team:pilots")
    await team.remember("the pilots meet at noon", scopes=["team:pilots"])

    await plane.stack.kill("memory")
    await plane.stack.ready()

    for client, city in zip(people, ("Oslo", "Quito", "Lyon"), strict=True):
        recalled = await client.recall("where do I live?")
        assert [hit.memory.text for hit in recalled.hits] == [f"I live in {city}"]
    assert (await people[0].recall("when do the pilots meet?")).hits == []
    assert len((await people[1].with_scopes("team:pilots").recall("when do the pilots meet?")).hits) == 1

    moved = await people[0].remember("I live in Bergen", subject="me", attribute="home")
    assert moved.status == "superseded"
    context = await people[0].recall_context("where do I live?")
    assert "Bergen" in context.text
    assert "Oslo" not in context.text
    assert (await people[0].give_feedback(context.retrieval_id, 1.0)).updated == [moved.id]

    receipt = await people[0].forget(moved.id or "")
    assert (receipt.complete, receipt.count) == (True, 1)
    assert (await people[0].recall("where do I live?")).hits == []
    with pytest.raises(NotFound):
        await people[0].get_memory(moved.id or "")
    with pytest.raises(EmptyQuery):
        await people[0].recall("the and of")

    gone = await people[1].erase_user("ben")
    assert (gone.complete, gone.count) == (True, 1)
    assert [memory.text async for memory in people[2].list_memories()] == ["I live in Lyon"]


async def test_the_command_line_does_the_same(plane: Plane) -> None:
    here = {
        "CAISSON_URL": plane.stack.url,
        "CAISSON_API_KEY": plane.stack.platform_key,
        "CAISSON_TENANT": f"cli {uuid4().hex[:6]}",
        "CAISSON_USER": "ana",
    }
    added = await command(here, "add", "The deploy port is 8080", "--tag", "ops", "--subject", "deploy", "--json")
    memory_id = added["id"]
    assert added["status"] == "created"
    refused = await run(here, "add", "ok thanks")
    assert (refused.code, refused.stdout.split()[0]) == (1, "rejected")

    found = await run(here, "search", "which port is for deploys?")
    assert "The deploy port is 8080" in found.stdout
    assert "1 found" in found.stderr
    quoted = await run(here, "search", "deploy port", "--context")
    assert f'<memory id="{memory_id}"' in quoted.stdout

    edited = await command(here, "edit", memory_id, "--text", "The deploy port is 8081", "--json")
    assert (edited["text"], edited["tags"], edited["version"]) == ("The deploy port is 8081", ["ops"], 2)
    entries = (await run(here, "history", memory_id, "--json")).lines
    assert [entry["text"] for entry in entries] == ["The deploy port is 8080", "The deploy port is 8081"]
    assert [item["id"] for item in (await run(here, "list", "--json")).lines] == [memory_id]
    assert (await command(here, "show", memory_id, "--json"))["subject"] == "deploy"
    assert (await command(here, "usage", "--json"))["user_rows"] == 1
    assert (await command(here, "reconcile", "--json"))["checked"] == 1
    assert (await command(here, "consolidate", "--dry-run", "--json"))["applied"] is False
    assert [item["text"] for item in (await run(here, "export", "ana", "--json")).lines] == [
        "The deploy port is 8081"
    ]

    lent = ("add", "The ladder is lent to Bo", "--valid-from", "2026-01-01", "--valid-to", "2026-01-02T10:00Z")
    ladder = (await command(here, *lent, "--expires", "2040-01-01", "--json"))["id"]
    assert "ladder" not in (await run(here, "search", "where is the ladder")).stdout
    whole = await command(here, "edit", ladder, "--no-valid-to", "--no-expiry", "--json")
    assert (whole["valid_to"], whole["expires_at"]) == (None, None)
    assert "ladder" in (await run(here, "search", "where is the ladder")).stdout
    assert (await command(here, "forget", ladder, "--json"))["complete"] is True

    distilled = await run(here, "distil", "-", "--target", "1", stdin="the roof is flat\nthe roof is flat\n")
    while distilled.code == 75:
        job = distilled.stderr.split("--resume ")[1].split()[0]
        distilled = await run(here, "distil", "--resume", job)
    assert (distilled.code, distilled.stdout) == (0, "the roof is flat\n")

    receipt = await command(here, "forget", memory_id, "--json")
    assert (receipt["deleted"], receipt["complete"]) == ([memory_id], True)
    assert await command(here, "receipt", receipt["id"], "--json") == receipt
    await run(here, "add", "The spare key is at the desk")
    unsure = await run(here, "erase-user", "ana", stdin="n\n")
    assert unsure.code == 1
    assert (await command(here, "erase-user", "ana", "--yes", "--json"))["count"] == 1
    again = ("add", "The deploy port is 8081", "--subject", "deploy")
    forgotten = await run(here, *again)
    assert (forgotten.code, forgotten.stdout.split()[:2]) == (1, ["rejected", "forgotten:"])
    assert (await command(here, *again, "--confirmed", "--json"))["status"] == "created"
    unknown = await run(here, "show", memory_id)
    assert (unknown.code, "not_found" in unknown.stderr) == (1, True)


async def run(here: Mapping[str, str], *arguments: str, stdin: str | None = None) -> Ended:
    return await asyncio.to_thread(caisson, "memory", *arguments, env=here, stdin=stdin)


async def command(here: Mapping[str, str], *arguments: str) -> Any:
    ended = await run(here, *arguments)
    assert ended.code == 0, ended
    return json.loads(ended.stdout)
