"""The gate's thresholds, one pair for each embedder."""

from typing import Any

from caisson.common.postgres import Pool, acquire, fetch_all
from caisson.memory.domain.gating import Calibration, Thresholds


class PostgresCalibrations:
    """Keeps and reads calibrations."""

    def __init__(self, pool: Pool, queries: Any) -> None:
        self._pool = pool
        self._sql = queries

    async def all(self) -> list[Calibration]:
        """Return every calibration, the newest first."""
        async with acquire(self._pool) as connection:
            rows = await fetch_all(self._sql.calibrations(connection))
        return [
            Calibration(
                embedder=row["embedder"],
                set_hash=row["set_hash"],
                thresholds=Thresholds(dense=row["dense_threshold"], lexical=row["lexical_threshold"]),
            )
            for row in rows
        ]

    async def keep(self, calibration: Calibration, *, target_rate: float, measured: dict[str, Any]) -> None:
        """Store a calibration in place of an earlier one of the same embedder."""
        async with acquire(self._pool) as connection:
            await self._sql.calibrate(
                connection,
                embedder=calibration.embedder,
                set_hash=calibration.set_hash,
                target_rate=target_rate,
                dense=calibration.thresholds.dense,
                lexical=calibration.thresholds.lexical,
                measured=measured,
            )

    async def forget(self) -> None:
        """Delete every calibration: the gate starts from its defaults again."""
        async with acquire(self._pool) as connection:
            await self._sql.forget_calibrations(connection)
