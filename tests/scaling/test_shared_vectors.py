"""Vectors in an object store that several processes write at once, with the credentials that recordings use."""

import asyncio
import os
import sys
from uuid import UUID, uuid4

import pytest
from switchboard.plugin_sdk import Chunk
from switchboard_vectorstore.store import LanceSettings, LanceStore

from tests.fixtures.object_store import BUCKET, start_s3_server

pytestmark = pytest.mark.system

URI = f"s3://{BUCKET}/vectors"
DOCUMENTS = 5
NORTH = (1.0, 0.0, 0.0, 0.0)
WRITER = f"""
import asyncio, sys
from uuid import UUID
from switchboard.plugin_sdk import Chunk
from switchboard_vectorstore.store import LanceSettings, LanceStore

async def main(organization, writer):
    store = LanceStore(LanceSettings(uri="{URI}"))
    for document in range({DOCUMENTS}):
        chunk = Chunk(UUID(int=1), UUID(int=writer * 100 + document), 0, f"{{writer}} {{document}}", {NORTH})
        await store.put(organization, "model", [chunk])

asyncio.run(main(UUID(sys.argv[1]), int(sys.argv[2])))
"""


async def test_processes_share_vectors_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    organization = uuid4()
    async with start_s3_server() as s3:
        for name, value in {**s3.environment, "AWS_REGION": "us-east-1"}.items():
            monkeypatch.setenv(name, value)
        writers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", WRITER, str(organization), str(number), env=os.environ
            )
            for number in (1, 2)
        ]
        assert [await writer.wait() for writer in writers] == [0, 0]
        store = LanceStore(LanceSettings(uri=URI))
        await store.check()
        await store.put(organization, "model", [Chunk(UUID(int=1), UUID(int=300), 0, "3 0", NORTH)])
        found = await store.search(organization, "model", text="", vector=NORTH, knowledge_base_ids=None, limit=100)
        written = [f"{writer} {document}" for writer in (1, 2) for document in range(DOCUMENTS)]
        assert sorted(match.text for match in found) == [*written, "3 0"]
        assert await store.search(uuid4(), "model", text="", vector=NORTH, knowledge_base_ids=None, limit=1) == []
        await store.close()
