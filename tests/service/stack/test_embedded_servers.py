"""The embedded servers keep what they were given, and forget what they were told to forget."""

import secrets
from pathlib import Path

import asyncpg
import pytest

from caisson.stack.children import StackError
from caisson.stack.nats import SERVICES, EmbeddedNats
from caisson.stack.postgres import EmbeddedPostgres


async def test_a_database_survives_a_restart_and_asks_for_its_password(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "postgres", password=secrets.token_hex())
    await server.start()
    try:
        connection = await asyncpg.connect(server.url)
        assert await connection.fetchval("SHOW fsync") == "on"
        assert not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        await connection.execute("CREATE TABLE kept (word text); INSERT INTO kept VALUES ('here')")
        await connection.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(server.url, password="wrong")
        await server.stop()
        await server.start()
        connection = await asyncpg.connect(server.url)
        assert await connection.fetchval("SELECT word FROM kept") == "here"
        await connection.close()
    finally:
        await server.stop()


async def test_no_folder_above_the_data_is_opened_to_others(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "postgres", password=secrets.token_hex())
    await server.start()
    await server.stop()
    assert closed.stat().st_mode & 0o077 == 0


async def test_a_path_too_long_for_a_socket_is_no_obstacle(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / ("long" * 30), password=secrets.token_hex())
    await server.start()
    try:
        connection = await asyncpg.connect(server.url)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()
    finally:
        await server.stop()


async def test_a_wiped_nats_comes_back_empty_on_the_same_port(tmp_path: Path) -> None:
    server = EmbeddedNats(tmp_path / "nats", passwords={name: secrets.token_hex() for name in SERVICES})
    await server.start()
    try:
        url, marker = server.url, tmp_path / "nats" / "store" / "marker"
        marker.touch()
        await server.wipe()
        assert server.url == url
        assert not marker.exists()
    finally:
        await server.stop()


async def test_a_nats_without_a_password_for_every_service_does_not_start(tmp_path: Path) -> None:
    server = EmbeddedNats(tmp_path / "nats", passwords={"gateway": "secret", "proxy": "secret"})
    with pytest.raises(StackError, match="RUNNER_NATS_PASSWORD"):
        await server.start()
    await server.stop()
