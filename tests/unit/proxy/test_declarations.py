"""The file of upstreams: what is wrong is said with its line, and a secret with nothing."""

from pathlib import Path

import pytest

from caisson.common.errors import Misconfigured
from caisson.proxy.adapters.upstreams_file import load
from caisson.proxy.domain.policies import Fixed, Source

BASE = """\
upstreams:
  a:
    base_url: http://h
    allow:
      - {methods: [GET], path: /v1/**}
"""

BROKEN = (
    ("upstreams:\n  a: [", "2", "not YAML"),
    ("upstreams:\n  a:\n    b: 1\n    b: 2\n", "4", "a key twice"),
    ("upstreams: 7\n", "1", "no mapping"),
    (BASE.replace("allow", "alow"), "4", "an unknown key"),
    (BASE.replace("  a:", "  A b:"), "2", "a name that is no segment"),
    (BASE.replace("GET", "TRACE"), "5", "a method that echoes"),
    (BASE.replace("/v1/**", "/v1/**/x"), "5", "a template that is none"),
    (BASE.replace("http://h", "ftp://h"), "2", "another scheme"),
    (BASE.replace("http://h", "http://u:p@h"), "2", "credentials in the address"),
    (BASE.replace("http://h", "http://h/a/../b"), "2", "an address that is not canonical"),
    (BASE.replace("http://h", "${NOT_SET_ANYWHERE}"), "2", "a variable that is not set"),
    (BASE + "    tenant:\n      - {query: a, header: b}\n", "7", "two places in one"),
    (BASE + "    tenant:\n      - {path: /v1/x}\n", "7", "a path without the tenant"),
    (BASE + "    tenant:\n      - {header: 'X Y'}\n", "7", "a header that is none"),
    (BASE + "    datasets:\n      - {path: '/v1/{tenant}'}\n", "7", "a path without the dataset"),
    (BASE + "    credential: {bearer: {from: vault}}\n", "6", "an unknown source"),
    (BASE + "    credential: {basic: {from: run}}\n", "6", "an unknown kind"),
    (BASE + "    credential: {bearer: {from: env NOT_SET_ANYWHERE}}\n", "2", "a variable that is empty"),
    (BASE + "    limits:\n      connect_s: 0\n", "7", "a limit of zero"),
    (BASE + "    limits: {request_body_mib: .inf}\n", "6", "a limit that is none"),
)


@pytest.mark.parametrize(("text", "line", "reason"), BROKEN, ids=[reason for *_, reason in BROKEN])
def test_a_broken_file_is_refused_with_the_line(text: str, line: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "upstreams.yaml"
    file.write_text(text)
    with pytest.raises(Misconfigured) as refused:
        load(file)
    assert f"{file}:{line}:" in refused.value.detail


def test_the_repositorys_own_file_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METRICS_URL", "http://127.0.0.1:9999")
    policies = load(Path(__file__).parents[3] / "config" / "upstreams.yaml")
    assert policies["metrics"].authority == b"127.0.0.1:9999"
    assert policies["metrics"].credential is not None
    assert policies["metrics"].credential.sources == (Source.RUN, Source.TENANT)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_the_end_of_a_secret_files_line_is_not_part_of_the_secret(ending: str, tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / "upstreams.yaml"
    secret.write_text("s3cret-value" + ending, newline="")
    file.write_text(BASE + f"    credential: {{header: {{name: X-Key, from: run, else: file {secret}}}}}\n")

    credential = load(file)["a"].credential

    assert credential is not None
    assert credential.sources == (Source.RUN, Fixed(origin=f"file {secret}", value="s3cret-value"))
    assert "s3cret" not in repr(credential)


@pytest.mark.parametrize("value", ["", "a\nb", "a\r\nX: 1", "schlüssel", " padded ", "nul\0"])
def test_a_secret_that_cannot_stand_in_a_header_stops_the_load_and_is_not_told(value: str, tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / "upstreams.yaml"
    secret.write_text(value, encoding="utf-8", newline="")
    file.write_text(BASE + f"    credential: {{bearer: {{from: file {secret}}}}}\n")
    with pytest.raises(Misconfigured) as refused:
        load(file)
    assert str(secret) in refused.value.detail
    assert not value.strip() or value not in refused.value.detail
