"""What `.env.example` must say: every setting of every service. `python -m tests.support.env_example` prints it."""

import importlib
import pkgutil
import sys
from enum import Enum
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import caisson
from caisson.common.settings import EXAMPLE_SECRET, ServiceSettings

HEAD = f"""\
# Every setting of every service, with its default. A line that begins with #NAME= shows a default; uncomment it to
# change it. What has no default must be set; `{EXAMPLE_SECRET}` marks secrets and keys, and a service does not start
# while one of its own is missing or left like this.
#
# Secrets may come from files instead: CAISSON_SECRETS_DIR names a folder with one file per setting, called like it.
"""


def settings_classes() -> list[type[ServiceSettings]]:
    """Return the settings class of every service, by name."""
    services = [module.name for module in pkgutil.iter_modules(caisson.__path__)]
    found = []
    for service in services:
        try:
            module = importlib.import_module(f"caisson.{service}.settings")
        except ModuleNotFoundError:
            continue
        found += [kind for kind in vars(module).values() if _is_own(kind, module.__name__)]
    return sorted(found, key=lambda kind: kind.__name__)


def render() -> str:
    """Return the whole file."""
    sections = []
    for kind in settings_classes():
        prefix = str(kind.model_config["env_prefix"])
        lines = [_line(f"{prefix}{name.upper()}", field) for name, field in kind.model_fields.items()]
        sections.append(f"\n# {(kind.__doc__ or '').strip()}\n" + "".join(lines))
    return HEAD + "".join(sections)


def _is_own(kind: Any, module: str) -> bool:
    return (
        isinstance(kind, type)
        and issubclass(kind, ServiceSettings)
        and kind is not ServiceSettings
        and kind.__module__ == module
        and "env_prefix" in kind.model_config
    )


def _line(variable: str, field: FieldInfo) -> str:
    assert field.description, f"{variable} has no description"
    if field.default is PydanticUndefined:
        return f"# {field.description}\n{variable}={EXAMPLE_SECRET}\n"
    assert not isinstance(field.default, SecretStr), "a secret has no default"
    value = field.default.value if isinstance(field.default, Enum) else field.default
    return f"# {field.description}\n#{variable}={'' if value is None else value}\n"


if __name__ == "__main__":
    sys.stdout.write(render())
