"""Files that only their owner may read, from the first byte on."""

import json
import os
from pathlib import Path
from typing import Any


def write_private(file: Path, content: str | dict[str, Any]) -> None:
    """Write text, or an object as JSON, in one step, readable by the owner alone."""
    text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)
    partial.replace(file)
