"""Documents fail with the code: links resolve, commands exist, alerts name metrics that are there."""

import importlib
import pkgutil
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

import caisson.gateway
import caisson.memory
import caisson.proxy
import caisson.runner

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_PATH = re.compile(r"`((?:libs|services|docs|deploy|config|examples|tests|bench)/[\w./-]*)`")
_COMMAND = re.compile(r"^(?:\.venv/bin/)?caisson ([a-z-]+)", re.MULTILINE)
_TARGET = re.compile(r"^make ([a-z]+)", re.MULTILINE)
_FENCE = re.compile(r"```sh\n(.*?)```", re.DOTALL)
_METRIC = re.compile(r"\bcaisson_[a-z_]+\b")
_ALERT = re.compile(r"`(Caisson[A-Z]\w+)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_in_a_document_exists(document: Path) -> None:
    missing = [path for path in _PATH.findall(document.read_text()) if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_in_a_document_resolves(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text())
    assert not [link for link in links if not (document.parent / link).exists()]


def test_every_command_of_the_readme_exists() -> None:
    shell = "\n".join(_FENCE.findall((ROOT / "README.md").read_text()))
    known = subprocess.run([ROOT / ".venv/bin/caisson", "--help"], capture_output=True, text=True, check=True).stdout
    targets = (ROOT / "Makefile").read_text()
    assert all(f" {name} " in known for name in _COMMAND.findall(shell))
    assert all(f"\n{name}:" in targets for name in _TARGET.findall(shell))


def test_alerts_and_documents_name_metrics_that_exist() -> None:
    for package in (caisson.gateway, caisson.memory, caisson.proxy, caisson.runner):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".loops" in module.name or ".handlers" in module.name or module.name.endswith(".metrics"):
                importlib.import_module(module.name)
    exposed = {sample.name for metric in REGISTRY.collect() for sample in metric.samples}
    exposed |= {metric.name for metric in REGISTRY.collect()} | {
        f"{metric.name}_total" for metric in REGISTRY.collect()
    }
    named = {name for rules in _alerts().values() for rule in rules for name in _METRIC.findall(rule["expr"])}
    named |= set(_METRIC.findall((ROOT / "docs/operations.md").read_text()))
    assert named <= exposed, named - exposed


def test_the_runbook_names_every_alert_of_memory_and_none_that_is_not_there() -> None:
    alerts = {group: {rule["alert"] for rule in rules} for group, rules in _alerts().items()}
    named = set(_ALERT.findall((ROOT / "docs/operations.md").read_text()))
    assert alerts["caisson-memory"] <= named <= set().union(*alerts.values())


def _alerts() -> dict[str, list[dict[str, str]]]:
    groups = yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"]
    return {group["name"]: group["rules"] for group in groups}
