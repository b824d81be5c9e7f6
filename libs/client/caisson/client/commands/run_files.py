"""Files that describe a run: the body of `POST /v1/runs` as JSON or YAML.

Invariant: a message about a file names the place, never its content: it may hold a credential.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from caisson.client.configuration import NotConfigured


def read_body(source: str) -> dict[str, Any]:
    """Read a run's body from a JSON or YAML file, or from stdin for `-`.

    Raises:
        NotConfigured: it cannot be read, or is not an object.
    """
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise NotConfigured(f"cannot read {source}: {error.__class__.__name__}") from None
    body = _parse(text, source)
    if not isinstance(body, dict):
        raise NotConfigured(f"{source} must hold an object: the body of POST /v1/runs")
    return body


def _parse(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        body = yaml.safe_load(text)
        json.dumps(body, allow_nan=False)
    except yaml.MarkedYAMLError as error:
        place = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise NotConfigured(f"{source} is neither JSON nor YAML{place}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise NotConfigured(f"{source} holds what JSON cannot carry: {error}") from None
    return body
