"""Evaluations and calibrations beside the service: the configured embedder, and an index of their own for a while."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from caisson.common.errors import InvalidInput, Misconfigured
from caisson.common.postgres import connect_pool, load_queries, migrate
from caisson.memory.adapters.postgres.calibrations import PostgresCalibrations
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.recent_embeddings import RecentEmbeddings
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.memory.domain.calibrating import Trial
from caisson.memory.domain.evaluating import Evaluation, Evaluator
from caisson.memory.domain.gating import Calibration
from caisson.memory.domain.question_sets import QuestionSet, read_set
from caisson.memory.engines import open_embedder
from caisson.memory.settings import CommandSettings, EmbedderSettings

SHIPPED_SET = "questions.json"


def open_set(file: Path | None) -> QuestionSet:
    """Read a question set, or the one that comes with the service; raises InvalidInput."""
    try:
        data = (files("caisson.memory") / SHIPPED_SET).read_bytes() if file is None else file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror}", field="set") from error
    return read_set(data)


async def evaluate(settings: EmbedderSettings, questions: QuestionSet, *, target_hit_rate: float) -> Evaluation:
    """Calibrate on one half and measure every arm on the other."""
    async with _evaluator(settings, questions) as (evaluator, _):
        return await evaluator.evaluate(target_hit_rate=target_hit_rate)


async def calibrate(
    settings: CommandSettings, questions: QuestionSet, *, target_hit_rate: float, keep: bool
) -> Trial:
    """Find the gate's thresholds; `keep` stores them for the service's next start.

    Raises:
        TargetOutOfReach: no gate lets so much through.
        Misconfigured: there is no database to keep them in.
    """
    database_url = _database_url(settings) if keep else None
    async with _evaluator(settings, questions) as (evaluator, embedder):
        trial = await evaluator.calibrate(target_hit_rate=target_hit_rate)
    if database_url is not None:
        calibration = Calibration(embedder=embedder, set_hash=questions.digest, thresholds=trial.thresholds)
        async with _calibrations(database_url) as calibrations:
            await calibrations.keep(calibration, target_rate=target_hit_rate, measured=measured(trial))
    return trial


async def forget(settings: CommandSettings) -> None:
    """Delete every calibration."""
    async with _calibrations(_database_url(settings)) as calibrations:
        await calibrations.forget()


def measured(trial: Trial) -> dict[str, Any]:
    """Return what a gate did on the questions that it was found on."""
    return {name: value for name, value in asdict(trial).items() if name != "thresholds"}


@asynccontextmanager
async def _evaluator(settings: EmbedderSettings, questions: QuestionSet) -> AsyncIterator[tuple[Evaluator, str]]:
    embedder = await open_embedder(settings)
    with tempfile.TemporaryDirectory(prefix="caisson-evaluation-") as folder:
        index = await EdgeIndex.open(Path(folder) / "index", embedder.identity)
        try:
            evaluator = Evaluator(questions, RecentEmbeddings(embedder), index, now=datetime.now(UTC))
            await evaluator.load()
            yield evaluator, embedder.identity.digest
        finally:
            await index.close()


def _database_url(settings: CommandSettings) -> str:
    if settings.database_url is None:
        raise Misconfigured(
            "MEMORY_DATABASE_URL is not set, neither in the environment nor in a file of $CAISSON_SECRETS_DIR "
            "(of `caisson up`: .caisson/secrets/memory)"
        )
    return settings.database_url.get_secret_value()


@asynccontextmanager
async def _calibrations(database_url: str) -> AsyncIterator[PostgresCalibrations]:
    pool = await connect_pool(database_url, application="caisson-calibrate", max_size=2)
    try:
        await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
        yield PostgresCalibrations(pool, load_queries(QUERIES_FILE))
    finally:
        await pool.close()
