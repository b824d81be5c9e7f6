"""Points of many tenants for measuring, and what is truly nearest among them.

Vectors lie in clusters; half of a tenant's memories are shared, half are its users'; one in ten has expired. One more
tenant holds a tenth of everything: each of its memories is a user's, and everybody's who has the grant.
"""

from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from caisson.common.ids import TenantId, UserId
from caisson.memory.domain.indexing import EmbedderIdentity, IndexQuery, Point
from caisson.memory.domain.layers import Layer
from caisson.memory.domain.principals import HardFilter, Principal

TENANTS = 100
USERS = 25
TOP = 10
LIMIT = 50
WORDS = [f"word{n}" for n in range(5_000)]
NOW = datetime(2026, 5, 1, tzinfo=UTC)
IDENTITY = EmbedderIdentity(name="bench", dimensions=384, digest="0" * 64)
BIG = TenantId("big")
EVERYBODY = "team:everybody"

Matrix = npt.NDArray[np.float32]


class Corpus:
    """Points of many tenants, and the vectors to compute every distance from."""

    def __init__(self, size: int) -> None:
        self._random = np.random.default_rng(7)
        self._centres = _unit(self._random.standard_normal((200, IDENTITY.dimensions)))
        cluster = self._random.integers(len(self._centres), size=size)
        noise = self._random.standard_normal((size, IDENTITY.dimensions)) * 0.05
        self.vectors = _unit(self._centres[cluster] + noise)
        self.tenants = [BIG if n % 10 == 0 else TenantId(f"tenant-{n % TENANTS}") for n in range(size)]
        drawn = self._random.integers(1 << 30, size=size)
        self.scopes = [_scopes(tenant, int(n)) for tenant, n in zip(self.tenants, drawn, strict=True)]
        self.expired = self._random.random(size) < 0.1

    def points(self, begin: int, end: int) -> list[Point]:
        words = self._random.integers(len(WORDS), size=(end - begin, 14))
        return [self._point(n, " ".join(WORDS[word] for word in words[n - begin])) for n in range(begin, end)]

    def query(self, near: int) -> IndexQuery:
        vector = _unit(self.vectors[near] + self._random.standard_normal((1, IDENTITY.dimensions)) * 0.03)[0]
        text = " ".join(WORDS[word] for word in self._random.integers(len(WORDS), size=5))
        return IndexQuery(dense=vector.tolist(), text=text, limit=LIMIT)

    def nearest(self, query: IndexQuery, filter_: HardFilter) -> list[str]:
        allowed = filter_.principal.allowed
        seen = [
            n
            for n, (owner, scopes, expired) in enumerate(zip(self.tenants, self.scopes, self.expired, strict=True))
            if owner == filter_.principal.tenant and scopes & allowed and not expired
        ]
        order = np.argsort(-(self.vectors[seen] @ np.asarray(query.dense, dtype=np.float32)))[:TOP]
        return [f"mem-{seen[at]}" for at in order]

    def _point(self, n: int, text: str) -> Point:
        return Point(
            memory_id=f"mem-{n}",
            chunk=0,
            version=1,
            tenant=self.tenants[n],
            scopes=self.scopes[n],
            layer=Layer.SEMANTIC,
            valid_from=NOW - timedelta(days=90),
            valid_to=None,
            expires_at=NOW - timedelta(days=1) if self.expired[n] else None,
            text=text,
            dense=self.vectors[n].tolist(),
        )


def a_filter(tenant: TenantId, user: str, granted: str | None = None) -> HardFilter:
    """The hard filter of a caller."""
    scopes = frozenset({granted} if granted else ())
    return HardFilter(principal=Principal(tenant=tenant, user=UserId(user), granted=scopes), now=NOW, as_of=NOW)


def _scopes(tenant: TenantId, drawn: int) -> frozenset[str]:
    if tenant == BIG:
        return frozenset({f"user:u{drawn % USERS}", EVERYBODY})
    return frozenset({"tenant"} if drawn % 2 else {f"user:u{drawn % USERS}"})


def _unit(rows: npt.NDArray[np.float64]) -> Matrix:
    unit: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
