"""A service reads its settings once, refuses to start without its secrets, and never shows one."""

from pathlib import Path

import pytest
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from caisson.common.errors import Misconfigured
from caisson.common.settings import EXAMPLE_SECRET, SECRETS_DIR_VARIABLE, Secret, ServiceSettings, load

PASSWORD = "s3cr3t-5f2c9a"


class Settings(ServiceSettings):
    model_config = SettingsConfigDict(env_prefix="PROBE_")

    nats_user: str = "probe"
    slots: int = Field(default=1, ge=1)
    url: Secret


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment in which the settings are complete."""
    monkeypatch.delenv(SECRETS_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("PROBE_NATS_PASSWORD", PASSWORD)
    monkeypatch.setenv("PROBE_URL", "postgresql://u:pw-77@h/d")
    return monkeypatch


def test_settings_come_from_the_environment(given: pytest.MonkeyPatch) -> None:
    given.setenv("PROBE_SLOTS", "3")
    settings = load(Settings)
    assert (settings.slots, settings.nats_password.get_secret_value()) == (3, PASSWORD)
    assert PASSWORD not in repr(settings)
    assert "pw-77" not in f"{settings} {settings.model_dump_json()}"


def test_secrets_may_come_from_a_folder_of_files(given: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given.delenv("PROBE_URL")
    (tmp_path / "PROBE_URL").write_text("postgresql://from-a-file\n")
    given.setenv(SECRETS_DIR_VARIABLE, str(tmp_path))
    assert load(Settings).url.get_secret_value() == "postgresql://from-a-file"


@pytest.mark.parametrize(
    ("value", "reason"),
    [(None, "missing"), ("", "empty"), (EXAMPLE_SECRET, "the documented example")],
)
def test_a_service_refuses_to_start_without_a_secret_of_its_own(
    given: pytest.MonkeyPatch, value: str | None, reason: str
) -> None:
    if value is None:
        given.delenv("PROBE_NATS_PASSWORD")
    else:
        given.setenv("PROBE_NATS_PASSWORD", value)
    with pytest.raises(Misconfigured) as refused:
        load(Settings)
    assert [field.field for field in refused.value.fields] == ["PROBE_NATS_PASSWORD"], reason


def test_every_wrong_setting_is_named_and_no_value_is_shown(given: pytest.MonkeyPatch) -> None:
    given.setenv("PROBE_SLOTS", "none-of-your-business")
    given.setenv("PROBE_URL", EXAMPLE_SECRET)
    with pytest.raises(Misconfigured) as refused:
        load(Settings)
    assert {field.field for field in refused.value.fields} == {"PROBE_SLOTS", "PROBE_URL"}
    shown = f"{refused.value!r} {refused.value.detail} {refused.value.fields}"
    assert not [value for value in ("none-of-your-business", PASSWORD, EXAMPLE_SECRET) if value in shown]
    assert refused.value.__cause__ is None
