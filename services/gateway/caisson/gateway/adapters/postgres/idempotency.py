"""Idempotency keys in the ledger."""

from typing import Any

from caisson.common.postgres import Pool, acquire
from caisson.gateway.domain.idempotency import LOCK_S, InProgress, KeyReused, Reserved, Stored


class PostgresIdempotency:
    """The domain's `IdempotencyStore`."""

    def __init__(self, pool: Pool, queries: Any, *, ttl_s: float) -> None:
        self._pool = pool
        self._sql = queries
        self._ttl_s = ttl_s

    async def reserve(self, scope: str, key: str, *, fingerprint: bytes, object_id: str) -> Reserved | Stored:
        """Take the key or return the stored answer; raise KeyReused or InProgress."""
        async with acquire(self._pool) as connection:
            mine = await self._sql.reserve_idempotency(
                connection,
                scope=scope,
                key=key,
                fingerprint=fingerprint,
                object_id=object_id,
                lock_s=LOCK_S,
                ttl_s=self._ttl_s,
            )
            if mine is not None:
                return Reserved(object_id=mine["object_id"])
            row = await self._sql.read_idempotency(connection, scope=scope, key=key)
        if row is None:
            raise InProgress("the first request with this key has just failed; send it again")
        if row["fingerprint"] != fingerprint:
            raise KeyReused("this key came with another body or path before", field="Idempotency-Key")
        if row["status"] is None:
            raise InProgress("the first request with this key is still running")
        return Stored(status=row["status"], headers=row["headers"], body=row["body"])

    async def store(self, scope: str, key: str, answer: Stored) -> None:
        """Remember the answer."""
        async with acquire(self._pool) as connection:
            await self._sql.store_idempotency(
                connection, scope=scope, key=key, status=answer.status, headers=answer.headers, body=answer.body
            )

    async def forget(self, scope: str, key: str) -> None:
        """Give the key back: its request was refused and had no effect."""
        async with acquire(self._pool) as connection:
            await self._sql.forget_idempotency_key(connection, scope=scope, key=key)

    async def unlock(self, scope: str, key: str) -> None:
        """Let a repeat act with the same object id."""
        async with acquire(self._pool) as connection:
            await self._sql.unlock_idempotency(connection, scope=scope, key=key)

    async def forget_expired(self) -> None:
        """Delete up to 1000 keys whose time is over."""
        async with acquire(self._pool) as connection:
            await self._sql.forget_expired_idempotency(connection)
