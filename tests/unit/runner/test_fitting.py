"""A result that is too large for one message loses the middle of its texts and nothing else."""

import pytest

from caisson.common.leases import FinishStep, Holding
from caisson.common.outcome import Exited, Output
from caisson.runner.domain.fitting import fit

LIMIT = 64 << 10


def result(stdout: Output, stderr: Output) -> FinishStep:
    return FinishStep(
        holding=Holding(worker_id="w", run_id="r", fence=1),
        step_id="s",
        outcome=Exited(exit_code=0),
        stdout=stdout,
        stderr=stderr,
        duration_ms=1,
    )


def test_what_fits_is_left_alone() -> None:
    small = result(Output(text="a" * 1000, bytes=1000), Output())
    assert fit(small, max_bytes=LIMIT) is small


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 200_000, id="plain"),
        pytest.param("\x01" * 50_000, id="six bytes for each character"),
        pytest.param("😀" * 60_000, id="four bytes for each character"),
    ],
)
def test_what_does_not_fit_keeps_its_beginning_its_end_and_its_count(text: str) -> None:
    marked = "begin" + text + "end"
    fitted = fit(result(Output(text=marked, bytes=7), Output(text="short", bytes=5)), max_bytes=LIMIT)
    assert len(fitted.model_dump_json().encode()) <= LIMIT
    assert fitted.stdout.text.startswith("begin")
    assert fitted.stdout.text.endswith("end")
    assert fitted.stdout.truncated
    assert fitted.stdout.bytes == 7
    assert fitted.stdout.gap_at is not None
    assert fitted.stderr == Output(text="short", bytes=5)


def test_a_gap_that_was_there_stays_between_the_same_parts() -> None:
    output = Output(text="h" * 90_000 + "t" * 30_000, bytes=10**9, truncated=True, gap_at=90_000)
    fitted = fit(result(output, Output()), max_bytes=LIMIT).stdout
    assert fitted.gap_at is not None
    assert set(fitted.text[: fitted.gap_at]) == {"h"}
    assert set(fitted.text[fitted.gap_at :]) == {"t"}
