"""The file that declares the upstreams.

Invariant: the policies in use are always those of one whole, valid file; a bad one changes nothing and says why.
"""

from pathlib import Path

import structlog
from pydantic import ValidationError

from caisson.common.errors import FieldError, Misconfigured
from caisson.proxy import metrics
from caisson.proxy.adapters.compiling import compile_upstream
from caisson.proxy.adapters.declarations import UpstreamsDeclaration
from caisson.proxy.adapters.yaml_lines import LineMap, Location, YamlInvalid, read_yaml
from caisson.proxy.domain.policies import Policies, Policy

log = structlog.get_logger(__name__)


class UpstreamsFile:
    """The declared upstreams, as last loaded."""

    def __init__(self, file: Path) -> None:
        """Load the file; raise Misconfigured with every error and its line."""
        self._file = file
        self.policies: Policies = load(file)

    def reload(self) -> None:
        """Load the file again; keep what there is when it is bad."""
        try:
            self.policies = load(self._file)
        except Misconfigured as error:
            metrics.RELOADS.labels(result="refused").inc()
            log.warning("upstreams.reload_refused", file=str(self._file), reason=error.detail)
        else:
            metrics.RELOADS.labels(result="loaded").inc()
            log.info("upstreams.reloaded", file=str(self._file), upstreams=sorted(self.policies))


def load(file: Path) -> dict[str, Policy]:
    """Read, validate and compile a file.

    Raises:
        Misconfigured: with every error and its line.
    """
    try:
        document, lines = read_yaml(file.read_text("utf-8"))
        declared = UpstreamsDeclaration.model_validate(document)
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{file} cannot be read: {error}") from error
    except YamlInvalid as error:
        raise Misconfigured(f"{file}:{error.line}: {error}") from error
    except ValidationError as error:
        found = [
            (item["loc"], item["msg"].removeprefix("Value error, "))
            for item in error.errors(include_url=False, include_input=False)
        ]
        raise _refuse(file, lines, found) from None
    return _compile(file, lines, declared)


def _compile(file: Path, lines: LineMap, declared: UpstreamsDeclaration) -> dict[str, Policy]:
    policies: dict[str, Policy] = {}
    errors: list[tuple[Location, str]] = []
    for name, upstream in declared.upstreams.items():
        try:
            policies[name] = compile_upstream(name, upstream)
        except ValueError as error:
            errors.append((("upstreams", name), str(error)))
    if errors:
        raise _refuse(file, lines, errors)
    return policies


def _refuse(file: Path, lines: LineMap, errors: list[tuple[Location, str]]) -> Misconfigured:
    fields = tuple(
        FieldError(field=".".join(map(str, location)), message=f"line {lines.nearest(location)}: {message}")
        for location, message in errors
    )
    told = "; ".join(
        f"{file}:{lines.nearest(location)}: {'.'.join(map(str, location))}: {message}" for location, message in errors
    )
    return Misconfigured(told, fields=fields)
