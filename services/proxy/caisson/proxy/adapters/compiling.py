"""From a declaration to a policy: addresses are read, secrets are fetched, templates are compiled.

Invariant: a secret that is missing or could not stand in a header stops the load; its value is in no message.
"""

import os
import re
import ssl
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from caisson.proxy.adapters.declarations import (
    BearerCredential,
    CredentialDeclaration,
    HeaderCredential,
    UpstreamDeclaration,
)
from caisson.proxy.domain.credentials import is_header_value
from caisson.proxy.domain.headers import Fates
from caisson.proxy.domain.places import JsonPlace, Places, QueryPlace
from caisson.proxy.domain.policies import CredentialRule, Fixed, Limits, Origin, Policy, Rule, Source
from caisson.proxy.domain.targets import Target, read_path
from caisson.proxy.domain.templates import compile_place, compile_rule

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def compile_upstream(name: str, declared: UpstreamDeclaration) -> Policy:
    """Compile one upstream.

    Raises:
        ValueError: saying what cannot be used.
    """
    url = _read_url(declared.base_url)
    credential = _compile_credential(declared.credential) if declared.credential else None
    headers = tuple(place.header.encode() for place in declared.tenant if place.header)
    dropped = [b"cookie", b"accept-encoding", credential.header.encode()] if credential else []
    if credential and not declared.trusted:
        dropped += [b"range", b"if-range"]  # pieces of an answer cannot be searched for the credential
    return Policy(
        name=name,
        origin=Origin(
            host=url.hostname or "",
            port=url.port or _DEFAULT_PORTS[url.scheme],
            tls=_trust(declared.ca_file) if url.scheme == "https" else None,
            connect_s=declared.limits.connect_s,
        ),
        authority=url.netloc.encode("ascii"),
        base_path=url.path.rstrip("/").encode("ascii"),
        rules=tuple(
            Rule(methods=frozenset(method.encode() for method in rule.methods), template=compile_rule(rule.path))
            for rule in declared.allow
        ),
        places=Places(
            queries=tuple(QueryPlace.of(place.query) for place in declared.tenant if place.query),
            headers=headers,
            paths=tuple(compile_place(place.path) for place in declared.tenant if place.path),
            documents=tuple(
                JsonPlace(keys=tuple(place.document.split("."))) for place in declared.tenant if place.document
            ),
        ),
        datasets=tuple(compile_place(place.path) for place in declared.datasets),
        credential=credential,
        trusted=declared.trusted,
        limits=_compile_limits(declared),
        fates=Fates(tenant=headers, dropped=dropped),
    )


def _compile_limits(declared: UpstreamDeclaration) -> Limits:
    limits = declared.limits
    return Limits(
        connect_s=limits.connect_s,
        first_byte_s=limits.first_byte_s,
        idle_s=limits.idle_s,
        request_body_bytes=int(limits.request_body_mib * (1 << 20)),
        document_bytes=int(limits.json_body_kib * (1 << 10)),
    )


def _read_url(text: str) -> SplitResult:
    url = urlsplit(_VARIABLE.sub(_substitute, text))
    if url.scheme not in _DEFAULT_PORTS or not url.hostname or url.username is not None or url.query or url.fragment:
        raise ValueError("base_url must be http:// or https://, a host, and possibly a port and a path")
    target = read_path(url.path.encode() or b"/")
    if not isinstance(target, Target) or not url.netloc.isascii():
        raise ValueError("base_url is not canonical")
    return url


def _substitute(match: re.Match[str]) -> str:
    value = os.environ.get(match[1], match[2])
    if value is None:
        raise ValueError(f"base_url needs the variable {match[1]}, which is not set")
    return value


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ValueError(f"ca_file: {error.strerror or 'not a certificate'}") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _compile_credential(declared: CredentialDeclaration) -> CredentialRule:
    if declared.header is not None:
        return CredentialRule(
            kind="header", header=declared.header.name, prefix="", sources=_sources(declared.header)
        )
    if declared.bearer is not None:
        return CredentialRule(
            kind="bearer", header="Authorization", prefix="Bearer ", sources=_sources(declared.bearer)
        )
    raise ValueError("a credential is bearer or header")


def _sources(declared: BearerCredential | HeaderCredential) -> tuple[Source | Fixed, ...]:
    texts = [text for text in (declared.source, declared.otherwise) if text is not None]
    return tuple(_source(text) for text in texts)


def _source(text: str) -> Source | Fixed:
    kind, _, argument = text.partition(" ")
    if kind == "env":
        value = os.environ.get(argument, "")
    elif kind == "file":
        value = _read_secret(Path(argument))
    else:
        return Source(kind)
    value = value.rstrip("\r\n")
    if not is_header_value(value):
        raise ValueError(f"the credential from {text} is empty, or holds more than one line of printable ASCII")
    return Fixed(origin=text, value=value)


def _read_secret(file: Path) -> str:
    try:
        return file.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"the credential file {file} cannot be read as ASCII text") from None
