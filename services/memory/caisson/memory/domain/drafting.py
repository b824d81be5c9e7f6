"""From what a caller sent to what the store writes. Invariant: a draft's scopes are all its principal's."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from caisson.common.errors import InvalidInput
from caisson.common.memories import NewMemory
from caisson.memory.domain.ends import check_session_end
from caisson.memory.domain.hashing import content_hash, context_key, fact_key, scope_key
from caisson.memory.domain.layers import FACTUAL, Layer
from caisson.memory.domain.lifetimes import SESSION_LIMIT
from caisson.memory.domain.memories import Origin
from caisson.memory.domain.moments import in_utc
from caisson.memory.domain.principals import Principal
from caisson.memory.domain.terms import terms
from caisson.memory.domain.tombstones import bare_hash

MAX_NAME_CHARS = 256
MAX_SCOPES = 16
MAX_TAGS = 64
MAX_METADATA_BYTES = 16 * 1024
RESERVED_METADATA = frozenset({"tenant_id", "user_id", "scope", "scopes", "owner_scope"})
"""Keys that would look as if metadata could say whose a memory is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A text and everything that is derived from it."""

    text: str
    content_hash: bytes
    bare_hash: bytes
    terms: list[str]
    trust: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A stored memory, at one version, that says the same in other words."""

    memory_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One admitted memory before it is stored. `valid_from` None means from the moment it is."""

    external_id: str | None
    owner_scope: str
    scopes: tuple[str, ...]
    scope_key: bytes
    layer: Layer
    wording: Wording
    context_key: bytes
    subject: str | None
    attribute: str | None
    fact_key: bytes | None
    outcome: str | None
    confirmations: int
    importance: float
    confidence: float
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    origin: Origin
    twin: Twin | None = None
    similar_to: str | None = None

    @property
    def is_fact(self) -> bool:
        """Whether a newer one of the same subject and attribute replaces it."""
        return self.fact_key is not None and self.layer in FACTUAL

    @property
    def is_confirmed(self) -> bool:
        """Whether a person says on purpose what may have been forgotten before."""
        return self.origin.kind == "person" and self.confirmations > 0


def draft(
    new: NewMemory, principal: Principal, *, trust: float, now: datetime, field: str, similar: Twin | None = None
) -> Draft:
    """Make a draft of an admitted memory.

    Raises:
        InvalidInput: naming the field below `field` and its limit.
    """
    scopes = _scopes(new, principal, field)
    owner = principal.own_scope if principal.own_scope in scopes else scopes[0]
    valid_from, valid_to = in_utc(new.valid_from, f"{field}.valid_from"), in_utc(new.valid_to, f"{field}.valid_to")
    if valid_to is not None and valid_to <= (valid_from or now):
        raise InvalidInput(f"{field}.valid_to must come after valid_from", field=f"{field}.valid_to")
    expires_at = in_utc(new.expires_at, f"{field}.expires_at")
    if Layer(new.layer) is Layer.SESSION:
        expires_at = expires_at or now + SESSION_LIMIT
        check_session_end(expires_at, now, field=f"{field}.expires_at")
    for name in ("subject", "attribute", "external_id"):
        _check_name(getattr(new, name), f"{field}.{name}")
    origin, fact = new.provenance, fact_key(new.subject, new.attribute)
    return Draft(
        external_id=new.external_id,
        owner_scope=owner,
        scopes=scopes,
        scope_key=scope_key(scopes),
        layer=Layer(new.layer),
        wording=word(new.text, principal, trust=trust),
        context_key=context_key(
            new.layer, fact=fact, outcome=new.outcome, run=origin.run_id, session=origin.session_id
        ),
        subject=new.subject,
        attribute=new.attribute,
        fact_key=fact,
        outcome=new.outcome,
        confirmations=new.confirmations,
        importance=float(new.importance),
        confidence=float(new.confidence),
        valid_from=valid_from,
        valid_to=valid_to,
        expires_at=expires_at,
        tags=check_tags(new.tags, f"{field}.tags"),
        metadata=check_metadata(new.metadata, f"{field}.metadata"),
        origin=Origin(kind=origin.kind, run_id=origin.run_id, session_id=origin.session_id, source=origin.source),
        twin=similar,
    )


def word(text: str, principal: Principal, *, trust: float) -> Wording:
    """Derive from a text what the store keeps beside it."""
    return Wording(
        text=text,
        content_hash=content_hash(principal.tenant, text),
        bare_hash=bare_hash(principal.tenant, text),
        terms=terms(text),
        trust=trust,
    )


def check_metadata(metadata: dict[str, Any], field: str) -> dict[str, Any]:
    """Return metadata that PostgreSQL can store and that claims nothing about whose the memory is."""
    if claimed := RESERVED_METADATA & metadata.keys():
        raise InvalidInput(f"{field} must not have the key {min(claimed)}", field=f"{field}.{min(claimed)}")
    try:
        encoded = json.dumps(metadata, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidInput(f"{field} must be JSON with finite numbers and valid Unicode", field=field) from error
    if b"\\u0000" in encoded:
        raise InvalidInput(f"{field} must not contain NUL characters", field=field)
    if len(encoded) > MAX_METADATA_BYTES:
        raise InvalidInput(f"{field} has {len(encoded)} bytes; the limit is {MAX_METADATA_BYTES}", field=field)
    return metadata


def check_tags(tags: list[str], field: str) -> tuple[str, ...]:
    """Return the tags without repeats."""
    if len(tags) > MAX_TAGS or any(not 1 <= len(tag) <= MAX_NAME_CHARS for tag in tags):
        raise InvalidInput(f"{field} may hold {MAX_TAGS} tags of 1 to {MAX_NAME_CHARS} characters each", field=field)
    return tuple(dict.fromkeys(tags))


def _scopes(new: NewMemory, principal: Principal, field: str) -> tuple[str, ...]:
    field = f"{field}.scopes"
    if new.scopes is None:
        return (principal.own_scope,)
    if not 1 <= len(new.scopes) <= MAX_SCOPES:
        raise InvalidInput(
            f"{field} must name 1 to {MAX_SCOPES} scopes; leave it out for the user's own", field=field
        )
    for scope in new.scopes:
        if scope not in principal.allowed:
            raise InvalidInput(f"{field}: the caller has no scope {scope!r}", field=field)
    return tuple(sorted(set(new.scopes)))


def _check_name(value: str | None, field: str) -> None:
    if value is not None and not (value.strip() and len(value) <= MAX_NAME_CHARS):
        raise InvalidInput(f"{field} must have 1 to {MAX_NAME_CHARS} characters", field=field)
