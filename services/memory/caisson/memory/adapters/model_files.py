"""The files of models that come as packages. Invariant: none is used whose SHA-256 is another than the known."""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution

from caisson.common.errors import Misconfigured


def checked(package: str, path: str, sha256: str) -> bytes:
    """Return the content of a file of an installed distribution, which is not imported.

    Raises:
        Misconfigured: when it is missing, or is not the file that our vectors come from.
    """
    try:
        with open(str(distribution(package).locate_file(path)), "rb") as file:  # noqa: PTH123 - SimplePath is no Path
            content = file.read()
    except (PackageNotFoundError, OSError) as error:
        raise Misconfigured(f"the model file {path} of the package {package} cannot be read: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise Misconfigured(f"the model file {path} of the package {package} has SHA-256 {found}, not {sha256}")
    return content


def digest(*parts: str) -> str:
    """Return one digest over what vectors depend on."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
