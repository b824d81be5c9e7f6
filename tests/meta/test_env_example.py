"""`.env.example` tells every setting of every service, its default and its meaning, and no secret."""

import re
from pathlib import Path

from tests.support.env_example import render, settings_classes

FILE = Path(__file__).parents[2] / ".env.example"


def test_the_file_says_what_the_settings_classes_say() -> None:
    assert FILE.read_text() == render(), "python -m tests.support.env_example > .env.example"


def test_each_service_is_in_it_and_each_variable_once() -> None:
    variables = re.findall(r"^#?([A-Z_]+)=", FILE.read_text(), re.MULTILINE)
    assert len(variables) == len(set(variables))
    assert {variable.split("_")[0] for variable in variables} == {
        kind.__name__.removesuffix("Settings").upper() for kind in settings_classes()
    }
    assert len(settings_classes()) >= 3
