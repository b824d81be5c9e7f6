"""The embedder, the index and the chat model that the settings name, held against what the store knows of them."""

from dataclasses import dataclass
from typing import Any, assert_never

from caisson.common.errors import Misconfigured
from caisson.common.postgres import Pool
from caisson.memory.adapters.chat_http import HttpChat
from caisson.memory.adapters.embedding_http import HttpEmbedder
from caisson.memory.adapters.minilm import MiniLm
from caisson.memory.adapters.postgres.calibrations import PostgresCalibrations
from caisson.memory.adapters.postgres.embeddings import PostgresEmbeddings
from caisson.memory.adapters.qdrant_edge.index import EdgeIndex
from caisson.memory.adapters.wordllama import WordLlama
from caisson.memory.domain.embedding import IndexReadiness, refuse_other_embedder, take_over
from caisson.memory.domain.gating import Thresholds, choose
from caisson.memory.domain.indexing import Embedder, EmbedderIdentity, Index
from caisson.memory.settings import EmbedderKind, EmbedderSettings, IndexEngine, MemorySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    """What turns text into vectors, what finds them, from which nearness on, and whether it finds all."""

    embedder: Embedder
    index: Index
    thresholds: Thresholds
    readiness: IndexReadiness


async def open_engines(settings: MemorySettings, pool: Pool, queries: Any, *, reembed: bool) -> Engines:
    """Open embedder and index; `reembed` lets another embedder take over.

    Raises:
        Misconfigured: the index was made with another embedder, or is open in another process.
    """
    embeddings = PostgresEmbeddings(pool, queries)
    embedder = await open_embedder(settings)
    calibrations = await PostgresCalibrations(pool, queries).all()
    thresholds = choose(calibrations, embedder=embedder.identity.digest, set_hash=settings.gate_set)
    if not reembed:
        await refuse_other_embedder(embeddings, embedder.identity)
    index = await open_index(settings, embedder.identity, rebuild=reembed)
    readiness = await take_over(embeddings, embedder.identity, is_empty=await index.count() == 0)
    return Engines(embedder=embedder, index=index, thresholds=thresholds, readiness=readiness)


async def open_embedder(settings: EmbedderSettings) -> Embedder:
    """Load the embedder.

    Raises:
        Misconfigured: when a setting that it needs is missing, or its files are not as required.
    """
    match settings.embedder:
        case EmbedderKind.MINILM:
            return await MiniLm.load()
        case EmbedderKind.WORDLLAMA:
            return await WordLlama.load()
        case EmbedderKind.HTTP:
            return _endpoint(settings)
    assert_never(settings.embedder)


def _endpoint(settings: EmbedderSettings) -> HttpEmbedder:
    url, model, dimensions = settings.embedder_url, settings.embedder_model, settings.embedder_dimensions
    if url is None or model is None or dimensions is None:
        raise Misconfigured(
            "MEMORY_EMBEDDER=http needs MEMORY_EMBEDDER_URL, MEMORY_EMBEDDER_MODEL and MEMORY_EMBEDDER_DIMENSIONS"
        )
    api_key = settings.embedder_api_key.get_secret_value() if settings.embedder_api_key else None
    return HttpEmbedder.connect(url, model=model, dimensions=dimensions, api_key=api_key)


async def open_index(settings: MemorySettings, identity: EmbedderIdentity, *, rebuild: bool) -> Index:
    """Open the index; `rebuild` discards what another embedder wrote.

    Raises:
        Misconfigured: when another process has it open, another embedder wrote it, or its address is missing.
    """
    if settings.index is IndexEngine.EDGE:
        return await EdgeIndex.open(
            settings.index_dir, identity, rebuild=rebuild, erase_within_s=settings.erase_within_s
        )
    if settings.qdrant_url is None:
        raise Misconfigured("MEMORY_INDEX=server needs MEMORY_QDRANT_URL")
    # 42 MiB of client that the embedded index does not need.
    from caisson.memory.adapters.qdrant_server import ServerIndex  # noqa: PLC0415
    from caisson.memory.adapters.qdrant_server_collections import connect  # noqa: PLC0415

    api_key = settings.qdrant_api_key.get_secret_value() if settings.qdrant_api_key else None
    return await ServerIndex.open(connect(settings.qdrant_url, api_key=api_key), identity, rebuild=rebuild)


def open_chat(settings: MemorySettings) -> HttpChat | None:
    """Return the model that words distillates and summaries, None where none is configured.

    Raises:
        Misconfigured: when only a part of it is.
    """
    url, model, api_key = settings.chat_url, settings.chat_model, settings.chat_api_key
    if url is None and model is None and api_key is None:
        return None
    if url is None or model is None:
        raise Misconfigured("a chat model needs MEMORY_CHAT_URL and MEMORY_CHAT_MODEL")
    return HttpChat.connect(url, model, api_key=api_key.get_secret_value() if api_key else None)
