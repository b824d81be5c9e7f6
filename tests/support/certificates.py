"""A certificate authority for one test, and a server certificate of it."""

import subprocess
from pathlib import Path


def issue(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """Return the authority's certificate, and the server's certificate and key."""
    authority, authority_key = folder / "ca.pem", folder / "ca.key"
    certificate, key, request, extensions = (folder / name for name in ("s.pem", "s.key", "s.csr", "s.ext"))
    new = ("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    sign = ("openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-CAcreateserial")
    extensions.write_text(f"subjectAltName=DNS:{host}\n")
    for command in (
        (*new, "-x509", "-days", "2", "-subj", "/CN=Test CA", "-keyout", authority_key, "-out", authority),
        (*new, "-subj", f"/CN={host}", "-keyout", key, "-out", request),
        (*sign, "-days", "2", "-extfile", extensions, "-out", certificate),
    ):
        subprocess.run(command, check=True, capture_output=True)
    return authority, certificate, key
