"""The LanceDB store in an object store, on the wire: an in-memory S3 with the operations that its client needs."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from uuid import uuid4
from xml.sax.saxutils import escape

import pytest
import pytest_asyncio
from aiohttp import web
from switchboard.plugin_sdk import Chunk, ProviderError
from switchboard.plugin_sdk.testing import VectorStoreContract
from switchboard_vectorstore.store import LanceSettings, LanceStore

NORTH = (1.0, 0.0, 0.0, 0.0)


class ObjectStore:
    """One bucket. `unsigned` counts requests without a signature; while `closed`, all requests are refused."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.unsigned = 0
        self.closed = False
        self.url = ""
        self._uploads: dict[str, dict[int, bytes]] = {}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.unsigned += "AWS4-HMAC-SHA256" not in request.headers.get("Authorization", "")
        if self.closed:
            return web.Response(
                status=403, content_type="application/xml", text="<Error><Code>AccessDenied</Code></Error>"
            )
        key = request.match_info.get("key", "")
        if request.method == "GET" and "list-type" in request.query:
            return self._list(request.query)
        if request.method == "POST":
            return await self._post(request, key)
        if request.method == "PUT":
            return await self._put(request, key)
        if request.method == "DELETE":
            self.objects.pop(key, None)
            return web.Response(status=204)
        return self._get(request, key)

    def _list(self, query: Mapping[str, str]) -> web.Response:
        prefix, delimiter, after = query.get("prefix", ""), query.get("delimiter", ""), query.get("start-after", "")
        keys, folders = [], set()
        for key in sorted(name for name in self.objects if name.startswith(prefix) and name > after):
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest[: rest.index(delimiter) + 1])
            else:
                keys.append(key)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size><ETag>{self._etag(key)}</ETag>"
            "<LastModified>2026-11-20T09:30:00.000Z</LastModified></Contents>"
            for key in keys
        ) + "".join(f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders))
        return self._xml(f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}</ListBucketResult>")

    async def _post(self, request: web.Request, key: str) -> web.Response:
        if "uploads" in request.query:
            upload = uuid4().hex
            self._uploads[upload] = {}
            return self._xml(
                f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        if "uploadId" in request.query:
            parts = self._uploads.pop(request.query["uploadId"])
            self.objects[key] = b"".join(part for _, part in sorted(parts.items()))
            return self._xml(
                f"<CompleteMultipartUploadResult><ETag>{self._etag(key)}</ETag></CompleteMultipartUploadResult>"
            )
        for name in re.findall(r"<Key>(.*?)</Key>", await request.text()):
            self.objects.pop(name, None)
        return self._xml("<DeleteResult></DeleteResult>")

    async def _put(self, request: web.Request, key: str) -> web.Response:
        body = await request.read()
        if "uploadId" in request.query:
            self._uploads[request.query["uploadId"]][int(request.query["partNumber"])] = body
            return web.Response(headers={"ETag": '"part"'})
        if request.headers.get("If-None-Match") == "*" and key in self.objects:
            return web.Response(status=412)
        source = request.headers.get("x-amz-copy-source")
        self.objects[key] = body if source is None else self.objects[source.lstrip("/").partition("/")[2]]
        return (
            web.Response(headers={"ETag": self._etag(key)})
            if source is None
            else self._xml("<CopyObjectResult></CopyObjectResult>")
        )

    def _get(self, request: web.Request, key: str) -> web.Response:
        if key not in self.objects:
            return web.Response(
                status=404, content_type="application/xml", text="<Error><Code>NoSuchKey</Code></Error>"
            )
        data, headers = self.objects[key], {"ETag": self._etag(key), "Last-Modified": "Fri, 20 Nov 2026 09:30:00 GMT"}
        range_match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range", ""))
        if range_match is None:
            return web.Response(body=data, headers=headers)
        first = int(range_match[1]) if range_match[1] else max(0, len(data) - int(range_match[2]))
        last = min(int(range_match[2]), len(data) - 1) if range_match[1] and range_match[2] else len(data) - 1
        return web.Response(
            status=206,
            body=data[first : last + 1],
            headers={**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"},
        )

    def _etag(self, key: str) -> str:
        return f'"{hashlib.sha256(self.objects[key]).hexdigest()[:16]}"'

    @staticmethod
    def _xml(text: str) -> web.Response:
        return web.Response(text=f'<?xml version="1.0"?>{text}', content_type="application/xml")


@pytest_asyncio.fixture
async def objects() -> AsyncIterator[ObjectStore]:
    store = ObjectStore()
    application = web.Application(client_max_size=1024**3)
    application.router.add_route("*", "/bucket/{key:.*}", store.handle)
    application.router.add_route("*", "/bucket", store.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    store.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield store
    await runner.cleanup()


def create_bucket_store(objects: ObjectStore) -> LanceStore:
    options = {
        "aws_endpoint": objects.url,
        "allow_http": "true",
        "aws_region": "us-east-1",
        "aws_access_key_id": "a",
        "aws_secret_access_key": "b",
    }
    return LanceStore(LanceSettings.model_validate({"uri": "s3://bucket/vectors", "storage_options": options}))


class TestLanceStoreInABucket(VectorStoreContract[LanceStore]):
    @pytest.fixture
    def provider(self, objects: ObjectStore) -> LanceStore:
        return create_bucket_store(objects)


async def test_organizations_have_separate_folders_and_every_request_is_signed(objects: ObjectStore) -> None:
    store, organizations = create_bucket_store(objects), [uuid4(), uuid4()]
    await asyncio.gather(
        *(store.put(one, "model", [Chunk(uuid4(), uuid4(), 0, "north", NORTH)]) for one in organizations)
    )
    assert {key.split("/")[1] for key in objects.objects} == {one.hex for one in organizations}
    assert objects.unsigned == 0


async def test_concurrent_writers_to_a_bucket_lose_nothing(objects: ObjectStore) -> None:
    organization, base = uuid4(), uuid4()
    writers = [create_bucket_store(objects), create_bucket_store(objects)]
    await writers[0].put(organization, "model", [Chunk(base, uuid4(), 0, "first", NORTH)])
    await asyncio.gather(
        *(
            writer.put(organization, "model", [Chunk(base, uuid4(), 0, f"{writer} {number}", NORTH)])
            for writer in writers
            for number in range(5)
        )
    )
    matches = await writers[0].search(organization, "model", text="", vector=NORTH, knowledge_base_ids=None, limit=50)
    assert len(matches) == 11


async def test_a_refusing_bucket_is_a_provider_error_without_secrets(objects: ObjectStore) -> None:
    objects.closed = True
    with pytest.raises(ProviderError, match="LanceDB") as refused:
        await create_bucket_store(objects).check()
    assert "secret" not in refused.value.message.lower()
