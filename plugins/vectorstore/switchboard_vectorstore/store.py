"""Vector store `lancedb`."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from pydantic import Field, SecretStr
from switchboard.plugin_sdk import OPERATOR_ONLY, Chunk, ChunkMatch, ProviderSettings, VectorStore

from switchboard_vectorstore.library import LanceConflict, connect_to_lancedb
from switchboard_vectorstore.tables import (
    build_id_condition,
    fuse_candidates,
    open_all_tables,
    open_or_create_table,
    open_table,
)

ATTEMPTS = 6


class LanceSettings(ProviderSettings):
    """Location of the vectors."""

    uri: str = Field(
        "",
        description=(
            "A folder, or the URI of an object store: `s3://…`, `gs://…`, `az://…`. Empty is `vectors` in DATA_DIR."
        ),
        json_schema_extra=OPERATOR_ONLY,
    )
    storage_options: dict[str, SecretStr] = Field(
        default_factory=dict,
        description=(
            "LanceDB's options for object stores (credentials, region, endpoint), stored encrypted. Those that are "
            "missing come from the vendor's environment variables."
        ),
        json_schema_extra=OPERATOR_ONLY,
    )


class LanceStore(VectorStore[LanceSettings]):
    """One folder per organization, with one table per embedding model.

    A query cannot reach another organization's files.
    """

    name = "lancedb"
    title = "LanceDB"
    Settings = LanceSettings

    def __init__(self, settings: LanceSettings) -> None:
        super().__init__(settings)
        self._connections: dict[UUID, Any] = {}
        self._making = asyncio.Lock()

    async def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def check(self) -> None:
        connection = await self._connect()
        await open_all_tables(connection)
        connection.close()

    async def put(self, organization_id: UUID, model: str, chunks: Sequence[Chunk]) -> None:
        connection = await self._connection(organization_id)
        for attempt in range(ATTEMPTS if chunks else 0):
            try:
                async with self._making:
                    table = await open_or_create_table(connection, model, len(chunks[0].vector))
                return await table.replace(chunks, f"{time.time_ns():020d}-{uuid4().hex[:8]}")
            except LanceConflict:
                # Processes that create an organization's first table at the same time conflict, and one of them is
                # refused.
                if attempt == ATTEMPTS - 1:
                    raise
                await asyncio.sleep(random.uniform(0.05, 0.2) * (attempt + 1))  # noqa: S311 - chance, not secrecy
        return None

    async def search(
        self,
        organization_id: UUID,
        model: str,
        *,
        text: str,
        vector: tuple[float, ...],
        knowledge_base_ids: Sequence[UUID] | None,
        limit: int,
    ) -> Sequence[ChunkMatch]:
        table = await open_table(await self._connection(organization_id), model)
        if table is None or (knowledge_base_ids is not None and not knowledge_base_ids):
            return []
        condition = None if knowledge_base_ids is None else build_id_condition("knowledge_base_id", knowledge_base_ids)
        # More than `limit`, because the best combined match may be in the middle of either ranking.
        depth = 2 * limit + 10
        near, worded = await asyncio.gather(
            table.find_nearest(vector, condition, depth), table.find_by_words(text, vector, condition, depth)
        )
        return fuse_candidates([*worded, *near], limit)

    async def delete_document(self, organization_id: UUID, document_id: UUID) -> None:
        for table in await open_all_tables(await self._connection(organization_id)):
            await table.delete(build_id_condition("document_id", [document_id]))

    async def delete_knowledge_base(
        self, organization_id: UUID, knowledge_base_id: UUID, *, model: str | None = None
    ) -> None:
        connection = await self._connection(organization_id)
        tables = await open_all_tables(connection) if model is None else [await open_table(connection, model)]
        for table in tables:
            if table is not None:
                await table.delete(build_id_condition("knowledge_base_id", [knowledge_base_id]))

    async def maintain(self, organization_id: UUID) -> None:
        for table in await open_all_tables(await self._connection(organization_id)):
            await table.maintain()

    async def _connection(self, organization_id: UUID) -> Any:
        known = self._connections.get(organization_id)
        if known is None:
            known = self._connections.setdefault(organization_id, await self._connect(organization_id.hex))
        return known

    async def _connect(self, folder: str = "") -> Any:
        base = self.settings.uri or str(self.data_dir.resolve() / "vectors")
        own = {name: value.get_secret_value() for name, value in self.settings.storage_options.items()}
        # `http://` comes from an endpoint that the operator wrote, such as a MinIO beside the server.
        return await connect_to_lancedb(f"{base.rstrip('/')}/{folder}", {"allow_http": "true", **own})
