"""The shipped set through the default embedder and the default index, as `caisson memory eval` plays it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from caisson.common.postgres import Pool, connect_pool, load_queries, migrate
from caisson.memory import trials
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.postgres.calibrations import PostgresCalibrations
from caisson.memory.app import MIGRATIONS_DIR, QUERIES_FILE, SCHEMA
from caisson.memory.domain.calibrating import TARGET_HIT_RATE
from caisson.memory.domain.evaluating import Evaluation
from caisson.memory.domain.gating import UNCALIBRATED, Calibration
from caisson.memory.domain.measuring import OVERALL
from caisson.memory.domain.question_sets import ABSTENTION, CROSS_TENANT
from caisson.memory.settings import CommandSettings
from caisson.stack.nats import EmbeddedNats
from tests.support.command_line import caisson
from tests.support.gateway import create_database
from tests.support.memory_process import Ground


@pytest.fixture(scope="module")
async def evaluation() -> Evaluation:
    questions = trials.open_set(None)
    return await trials.evaluate(CommandSettings(), questions, target_hit_rate=TARGET_HIT_RATE)


def test_the_gated_hybrid_is_better_than_either_leg_alone(evaluation: Evaluation) -> None:
    gated = evaluation.arms["hybrid with gate"][OVERALL]
    for alone in ("no memory", "dense", "sparse"):
        other = evaluation.arms[alone][OVERALL]
        assert gated.hit_at_1 > other.hit_at_1, alone
        assert gated.ndcg_at_10 > other.ndcg_at_10, alone
    assert gated.tokens < evaluation.arms["dense"][OVERALL].tokens / 4


def test_where_nothing_answers_almost_nothing_is_told(evaluation: Evaluation) -> None:
    assert evaluation.arms["hybrid with gate"][ABSTENTION].wrong_injection_rate <= 0.05
    assert evaluation.arms["with utility"][ABSTENTION].wrong_injection_rate <= 0.05


def test_no_arm_tells_anything_of_another_tenant_or_user(evaluation: Evaluation) -> None:
    for arm, slices in evaluation.arms.items():
        assert slices[OVERALL].foreign == 0, arm
        assert CROSS_TENANT in slices


def test_utility_costs_nothing_and_the_target_was_reached(evaluation: Evaluation) -> None:
    gated, swayed = evaluation.arms["hybrid with gate"][OVERALL], evaluation.arms["with utility"][OVERALL]
    assert swayed.ndcg_at_10 >= gated.ndcg_at_10 - 0.01
    assert evaluation.calibration.hit_rate >= TARGET_HIT_RATE


async def test_a_calibration_is_kept_for_the_embedder_and_the_set_it_is_of(
    memory_pool: Pool, memory_url: str, tmp_path: Path
) -> None:
    known = {"tenant": "t", "user": "u", "scopes": ["tenant"], "valid_from": "2026-01-01T00:00:00Z"}
    asked = {"tenant": "t", "user": "u", "slice": "easy"}
    whole = {
        "name": "mine",
        "memories": [
            known | {"id": "m1", "text": "the canteen closes at two"},
            known | {"id": "m2", "text": "tea is free"},
        ],
        "questions": [
            asked | {"id": f"q{number}", "text": "when does the canteen close", "relevant": ["m1"]}
            for number in range(4)
        ],
    }
    file = tmp_path / "set.json"
    file.write_text(json.dumps(whole))
    questions = trials.open_set(file)
    settings = CommandSettings.model_validate({"database_url": memory_url})
    trial = await trials.calibrate(settings, questions, target_hit_rate=1.0, keep=True)
    [kept] = await PostgresCalibrations(memory_pool, load_queries(QUERIES_FILE)).all()
    assert (kept.set_hash, kept.thresholds) == (questions.digest, trial.thresholds)
    await trials.forget(settings)
    assert await PostgresCalibrations(memory_pool, load_queries(QUERIES_FILE)).all() == []


async def test_a_service_does_not_start_on_a_gate_of_another_embedder_or_set(
    postgres_url: str, nats: EmbeddedNats, tmp_path: Path
) -> None:
    ground = Ground(folder=tmp_path, database_url=await create_database(postgres_url), nats=nats)
    pool = await connect_pool(ground.database_url, application="tests", max_size=2)
    await migrate(pool, MIGRATIONS_DIR, schema=SCHEMA)
    calibration = Calibration(embedder="f" * 64, set_hash="5" * 64, thresholds=UNCALIBRATED)
    await PostgresCalibrations(pool, load_queries(QUERIES_FILE)).keep(calibration, target_rate=0.45, measured={})
    said = await ground.refuse()
    assert "f" * 16 in said
    assert MiniLm.identity.digest[:16] in said
    mine = replace(calibration, embedder=MiniLm.identity.digest)
    await PostgresCalibrations(pool, load_queries(QUERIES_FILE)).keep(mine, target_rate=0.45, measured={})
    said = await ground.refuse(MEMORY_GATE_SET="6" * 64)
    assert "5" * 16 in said
    assert "6" * 16 in said
    await pool.close()


def test_the_commands_are_found_and_tell_what_is_wrong(tmp_path: Path) -> None:
    missing = caisson("memory", "eval", "--set", str(tmp_path / "none.json"))
    assert (missing.code, missing.stdout) == (1, "")
    assert "cannot read" in missing.stderr
    nowhere = caisson("memory", "calibrate")
    assert nowhere.code == 1
    assert "MEMORY_DATABASE_URL" in nowhere.stderr
