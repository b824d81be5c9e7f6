"""A log line is one JSON object, whoever wrote it, and never holds the values that a failing function had."""

import json
import subprocess
import sys

PROGRAM = """
import logging
import structlog
from caisson.common.ids import Ids, RunId, TenantId
from caisson.common.telemetry import bind, configure

configure("probe", level="info", otlp_endpoint=None)
bind(Ids(tenant=TenantId("acme"), run=RunId("run_1")))

def fail(password):
    raise ValueError("no")

for log in (structlog.get_logger("ours"), logging.getLogger("a.library")):
    try:
        fail("s3cr3t-5f2c9a")
    except ValueError:
        log.exception("it.failed")
structlog.get_logger("ours").debug("below the level")
logging.getLogger("a.library").info("below the level of libraries")
"""


def test_each_line_is_json_with_its_ids_and_without_the_variables_of_a_failure() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stderr
    lines = [json.loads(line) for line in told.splitlines()]
    assert [(line["event"], line["level"], line["service"]) for line in lines] == [
        ("it.failed", "error", "probe")
    ] * 2
    assert {(line["tenant"], line["run"]) for line in lines} == {("acme", "run_1")}
    assert [line["exception"][0]["exc_type"] for line in lines] == ["ValueError"] * 2
    assert "s3cr3t" not in told
