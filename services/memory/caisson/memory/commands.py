"""`caisson memory eval` and `caisson memory calibrate`: run on a host of the service, with its settings."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from caisson.common.errors import CaissonError
from caisson.common.settings import load
from caisson.memory import trials
from caisson.memory.domain.calibrating import TARGET_HIT_RATE, Trial
from caisson.memory.domain.evaluating import Evaluation
from caisson.memory.domain.measuring import OVERALL, Measures
from caisson.memory.settings import CommandSettings

SetFile = Annotated[
    Path | None, typer.Option("--set", metavar="FILE", help="A question set as JSON; else the one that is shipped.")
]
Target = Annotated[
    float,
    typer.Option(
        "--target-hit-rate",
        min=0.01,
        max=1,
        metavar="SHARE",
        help="Share of the answerable questions whose memory the gate must let through.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]
T = TypeVar("T")

_COLUMNS = ("hit@1", "hit@3", "nDCG@10", "injected", "wrong", "tokens", "foreign")


def evaluate(*, set_file: SetFile = None, target: Target = TARGET_HIT_RATE, as_json: AsJson = False) -> None:
    """Measure recall on the held-out half of a question set, arm by arm and slice by slice.

    The gate is calibrated on the other half. Where nothing answers a question, saying nothing is the hit. Exits with
    1 if anything was told that its asker may not see.
    """
    questions, settings = _checked(lambda: trials.open_set(set_file)), _checked(lambda: load(CommandSettings))
    evaluation = _run(trials.evaluate(settings, questions, target_hit_rate=target))
    if as_json:
        told = {"set": questions.name, "digest": questions.digest, "calibration": _plain(evaluation.calibration)}
        arms = {
            arm: {name: asdict(measures) for name, measures in slices.items()}
            for arm, slices in evaluation.arms.items()
        }
        typer.echo(json.dumps(told | {"arms": arms}))
    else:
        _print(evaluation, order=dict.fromkeys(question.slice for question in questions.questions))
    if any(slices[OVERALL].foreign for slices in evaluation.arms.values()):
        raise typer.Exit(1)


def calibrate(
    *,
    set_file: SetFile = None,
    target: Target = TARGET_HIT_RATE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the thresholds.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete what is kept: the gate starts anew.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find the gate's thresholds for the configured embedder, and keep them for the service's next start.

    They are found on half of a question set. Needs MEMORY_DATABASE_URL, as the service does; with `caisson up`:
    CAISSON_SECRETS_DIR=.caisson/secrets/memory.
    """
    settings = _checked(lambda: load(CommandSettings))
    if forget:
        _run(trials.forget(settings))
        typer.echo(json.dumps({"forgotten": True}) if as_json else "every calibration is deleted")
        return
    questions = _checked(lambda: trials.open_set(set_file))
    trial = _run(trials.calibrate(settings, questions, target_hit_rate=target, keep=not dry_run))
    if as_json:
        typer.echo(json.dumps(_plain(trial) | {"set_digest": questions.digest, "kept": not dry_run}))
    else:
        typer.echo(_told(trial) + ("" if dry_run else "; kept, and in force from the service's next start"))


def _checked(read: Callable[[], T]) -> T:
    try:
        return read()
    except CaissonError as error:
        raise _failure(error) from None


def _run(job: Coroutine[Any, Any, T]) -> T:
    return _checked(lambda: asyncio.run(job))


def _failure(error: CaissonError) -> typer.Exit:
    typer.echo(f"error {error.code}: {error.detail}", err=True)
    return typer.Exit(1)


def _plain(trial: Trial) -> dict[str, Any]:
    return asdict(trial.thresholds) | trials.measured(trial)


def _told(trial: Trial) -> str:
    thresholds = trial.thresholds
    return (
        f"gate: cosine ≥ {thresholds.dense:.2f} or lexical ≥ {thresholds.lexical:.2f}; on the calibration half "
        f"{trial.hit_rate:.0%} of the answerable questions hit, {trial.wrong_rate:.1%} of the others answered"
    )


def _print(evaluation: Evaluation, *, order: Iterable[str]) -> None:
    console = Console(highlight=False)
    console.print(_told(evaluation.calibration))
    overall = _table("arm", *_COLUMNS, title="overall")
    for arm, slices in evaluation.arms.items():
        overall.add_row(arm, *_cells(slices[OVERALL]))
    console.print(overall)
    names = [OVERALL, *order]
    console.print(_by_slice(evaluation, names, "hit@1", lambda measures: measures.hit_at_1))
    console.print(_by_slice(evaluation, names, "wrong", lambda measures: measures.wrong_injection_rate))


def _by_slice(evaluation: Evaluation, names: Iterable[str], title: str, read: Callable[[Measures], float]) -> Table:
    table = _table("slice", *(arm.removeprefix("hybrid ") for arm in evaluation.arms), title=f"{title} by slice")
    for name in names:
        table.add_row(name, *(f"{read(slices[name]):.2f}" for slices in evaluation.arms.values()))
    return table


def _table(first: str, *columns: str, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    table.add_column(first)
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _cells(measures: Measures) -> list[str]:
    shares = (
        measures.hit_at_1,
        measures.hit_at_3,
        measures.ndcg_at_10,
        measures.injection_rate,
        measures.wrong_injection_rate,
    )
    return [*(f"{share:.3f}" for share in shares), f"{measures.tokens:.0f}", str(measures.foreign)]
