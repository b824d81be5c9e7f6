"""The collections of a Qdrant server that are ours. Invariant: an index is created whole, or not used."""

from typing import Any

from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import UnexpectedResponse

from caisson.common.errors import Misconfigured
from caisson.common.ids import encode_token
from caisson.memory.adapters import qdrant_server_requests as requests
from caisson.memory.adapters.embedder_stamp import refuse_other, stamp
from caisson.memory.domain.indexing import EmbedderIdentity

PREFIX = "caisson-memory-"


def connect(url: str, *, api_key: str | None, timeout_s: int = 10) -> AsyncQdrantClient:
    """Return a client of the server at `url`; nothing is sent yet."""
    return AsyncQdrantClient(url=url, api_key=api_key, timeout=timeout_s, check_compatibility=False)


async def open_collection(client: AsyncQdrantClient, identity: EmbedderIdentity, *, rebuild: bool) -> str:
    """Return the name of the embedder's collection, created if there was none; `rebuild` removes all others of ours.

    Raises:
        Misconfigured: when what is there was written by another embedder.
    """
    name = PREFIX + encode_token(identity.name)
    ours = {found.name for found in (await client.get_collections()).collections if found.name.startswith(PREFIX)}
    stamps = {found: await _stamp_of(client, found) for found in ours}
    for found, written in stamps.items():
        if written == stamp(identity):
            continue
        if not rebuild:
            refuse_other(written, stamp(identity), where=f"the collection {found}")
        await client.delete_collection(found)
    if stamps.get(name) != stamp(identity):
        await _create(client, name, identity)
    await _create_indexes(client, name)
    return name


async def _stamp_of(client: AsyncQdrantClient, collection: str) -> dict[str, Any]:
    metadata: dict[str, Any] | None = (await client.get_collection(collection)).config.metadata
    if not metadata:
        raise Misconfigured(f"the collection {collection} is not ours: its metadata names no embedder")
    return metadata


async def _create(client: AsyncQdrantClient, name: str, identity: EmbedderIdentity) -> None:
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


async def _create_indexes(client: AsyncQdrantClient, name: str) -> None:
    known = (await client.get_collection(name)).payload_schema
    for field, schema in requests.payload_indexes().items():
        if field not in known:
            await client.create_payload_index(name, field, field_schema=schema, wait=True)
