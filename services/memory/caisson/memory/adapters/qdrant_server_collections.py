"""The collections of a Qdrant server that are ours, one for each embedder.

Invariant: an index is created whole, or not used; what another embedder wrote stays until that is dropped on purpose.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from caisson.common.errors import Misconfigured
from caisson.common.ids import encode_token
from caisson.memory.adapters import qdrant_server_requests as requests
from caisson.memory.adapters.embedder_stamp import refuse_other, stamp
from caisson.memory.adapters.point_payload import LAYOUT
from caisson.memory.domain.indexing import EmbedderIdentity

PREFIX = "caisson-memory-"
_DIGEST_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Collections:
    """An embedder's own collection, and those that others wrote before it."""

    own: str
    older: tuple[str, ...]


def connect(url: str, *, api_key: str | None, timeout_s: int = 10) -> AsyncQdrantClient:
    """Return a client of the server at `url`; nothing is sent yet."""
    return AsyncQdrantClient(url=url, api_key=api_key, timeout=timeout_s, check_compatibility=False)


async def open_collections(client: AsyncQdrantClient, identity: EmbedderIdentity, *, rebuild: bool) -> Collections:
    """Return the embedder's collection, created if there was none, and the others of ours.

    `rebuild` lets an embedder without a collection begin beside others. Those with points of another layout, which
    deletions would not reach, are removed at once.

    Raises:
        Misconfigured: when only others wrote what is there.
    """
    ours = [found.name for found in (await client.get_collections()).collections if found.name.startswith(PREFIX)]
    stamps = {found: await _stamp_of(client, found) for found in sorted(ours)}
    own = next((found for found, written in stamps.items() if written == stamp(identity)), None)
    older = {found: written for found, written in stamps.items() if found != own}
    if own is None:
        for found, written in older.items():
            if not rebuild:
                refuse_other(written, stamp(identity), where=f"the collection {found}")
        own = await _create(client, identity)
    await _create_indexes(client, own)
    for found, written in older.items():
        if written.get("layout") != LAYOUT:
            await client.delete_collection(found)
    return Collections(own=own, older=tuple(name for name, written in older.items() if written["layout"] == LAYOUT))


def name_of(identity: EmbedderIdentity) -> str:
    """Return what the collection of an embedder is called: two of one name differ by what they are made of."""
    whole = "\n".join(f"{name}={value}" for name, value in sorted(stamp(identity).items()))
    return f"{PREFIX}{encode_token(identity.name)}-{sha256(whole.encode()).hexdigest()[:_DIGEST_CHARS]}"


async def _stamp_of(client: AsyncQdrantClient, collection: str) -> dict[str, Any]:
    metadata: dict[str, Any] | None = (await client.get_collection(collection)).config.metadata
    if not metadata:
        raise Misconfigured(f"the collection {collection} is not ours: its metadata names no embedder")
    return metadata


async def _create(client: AsyncQdrantClient, identity: EmbedderIdentity) -> str:
    name = name_of(identity)
    try:
        await client.create_collection(
            name,
            vectors_config=requests.dense_parameters(identity.dimensions),
            sparse_vectors_config=requests.lexical_parameters(),
            hnsw_config=requests.graphs(),
            strict_mode_config=requests.strictness(),
            metadata=stamp(identity),
        )
    except UnexpectedResponse:  # another replica created it in the meantime, or it is not there
        refuse_other(await _stamp_of(client, name), stamp(identity), where=f"the collection {name}")
    return name


async def _create_indexes(client: AsyncQdrantClient, name: str) -> None:
    known = (await client.get_collection(name)).payload_schema
    for field, schema in requests.payload_indexes().items():
        if field not in known:
            await client.create_payload_index(name, field, field_schema=schema, wait=True)
