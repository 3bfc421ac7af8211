"""Knowledge bases through the API: the specification's fields, and search."""

import asyncio
import base64
from uuid import uuid4

from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import configure_providers
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime

from tests.fixtures.app import ApiResponse, Caller, Organizations
from tests.fixtures.json_access import Json, at, objects_at

HOURS = "# Opening hours\n\nThe bakery is open from seven to six, but not on Sundays."
PARKING = "# Parking\n\nYou may leave your car behind the church; the first hour is free."
BAD_DOCUMENTS: list[tuple[Json, str]] = [
    ({"content": "text"}, "filename"),
    ({"filename": "a.txt"}, "content"),
    ({"filename": "a.txt", "content": ""}, "content"),
    ({"filename": "a.txt", "content": "  \n "}, "content"),
    ({"filename": "", "content": "text"}, "filename"),
    ({"filename": "a.txt", "content": "a\0b"}, "content"),
    ({"filename": "a.txt", "content": "x" * (5 * 1024 * 1024 + 1)}, "content"),
    ({"filename": "a.txt", "content": "text", "content_type": "video/mp4"}, "content_type"),
    ({"filename": "a.pdf", "content": "not base64!"}, "content"),
    ({"filename": "a.json", "content": "{"}, "content"),
    ({"filename": "a.docx", "content": "bm8gemlw"}, "content"),
    ({"filename": "a.html", "content": "<p></p>"}, "content"),
    ({"filename": "a.txt", "content": "text", "mime": "text/plain"}, "mime"),
]


async def create_base(caller: Caller, name: str = "Bakery") -> str:
    created = await caller.post("/v1/knowledge-bases", {"name": name})
    assert created.status == 201, created.body
    return str(created.json["id"])


async def add_document(caller: Caller, base: str, content: str, filename: str = "text.md", **more: str) -> Json:
    document = await caller.post(
        f"/v1/knowledge-bases/{base}/documents", {"filename": filename, "content": content, **more}
    )
    assert document.status == 201, document.body
    return document.json


async def search_passages(caller: Caller, query: str, **more: object) -> list[Json]:
    response = await caller.post("/v1/knowledge-bases/search", {"query": query, **more})
    assert response.status == 200, response.body
    items = response.json["items"]
    assert isinstance(items, list)
    return items  # type: ignore[return-value]


def list_error_fields(response: ApiResponse) -> list[object]:
    errors = response.json["errors"]
    assert isinstance(errors, list)
    return [error["field"] for error in objects_at(errors)]


async def test_knowledge_base_life_cycle(caller: Caller) -> None:
    created = await caller.post("/v1/knowledge-bases", {"name": " Bakery ", "description": "What callers ask."})
    assert created.status == 201
    assert set(created.json) == {"id", "name", "description", "created_at", "updated_at"}
    assert (created.json["name"], created.json["description"]) == ("Bakery", "What callers ask.")
    path = f"/v1/knowledge-bases/{created.json['id']}"
    assert (await caller.get(path)).json == created.json
    second = await create_base(caller, "Second")
    response = await caller.get("/v1/knowledge-bases?limit=1")
    assert (response.json["total"], response.json["limit"], response.json["offset"]) == (2, 1, 0)
    assert [item["id"] for item in objects_at(response.json, "items")] == [second]
    deleted = await caller.send("DELETE", path)
    assert (deleted.status, deleted.body) == (204, b"")
    for method in ("GET", "DELETE"):
        assert (await caller.send(method, path)).status == 404
    assert (await caller.get(f"{path}/documents")).status == 404
    assert (await caller.post(f"{path}/documents", {"filename": "a.txt", "content": "text"})).status == 404


async def test_a_knowledge_base_needs_only_a_name(caller: Caller) -> None:
    for body in (
        {},
        {"name": ""},
        {"name": "x" * 256},
        {"name": "a", "description": None},
        {"name": "a", "color": "red"},
    ):
        assert (await caller.post("/v1/knowledge-bases", body)).status == 422


async def test_document_life_cycle(caller: Caller) -> None:
    base = await create_base(caller)
    document = await add_document(caller, base, HOURS, "hours.md", content_type="text/markdown; charset=utf-8")
    assert document == {
        "id": document["id"],
        "knowledge_base_id": base,
        "filename": "hours.md",
        "content_type": "text/markdown",
        "file_size": len(HOURS),
        "chunk_count": 1,
        "status": "ready",
        "error_message": None,
        "created_at": document["created_at"],
    }
    path = f"/v1/documents/{document['id']}"
    assert (await caller.get(path)).json == document
    other = await add_document(caller, base, PARKING)
    response = await caller.get(f"/v1/knowledge-bases/{base}/documents")
    assert [item["id"] for item in objects_at(response.json, "items")] == [at(other, "id"), at(document, "id")]
    deleted = await caller.send("DELETE", path)
    assert (deleted.status, deleted.body) == (204, b"")
    for method in ("GET", "DELETE"):
        assert (await caller.send(method, path)).status == 404
    assert (await caller.get(f"/v1/knowledge-bases/{base}/documents")).json["total"] == 1
    assert {item["filename"] for item in await search_passages(caller, "When are you open?")} == {"text.md"}


async def test_an_invalid_document_names_the_field_and_saves_nothing(caller: Caller) -> None:
    base = await create_base(caller)
    for body, field in BAD_DOCUMENTS:
        refused = await caller.post(f"/v1/knowledge-bases/{base}/documents", body)
        assert (refused.status, list_error_fields(refused)) == (422, [field])
    assert (await caller.get(f"/v1/knowledge-bases/{base}/documents")).json["total"] == 0


async def test_a_search_returns_passages_with_their_location(caller: Caller) -> None:
    base = await create_base(caller)
    hours = await add_document(caller, base, HOURS, "hours.md")
    await add_document(caller, base, PARKING, "parking.md")
    passages = await search_passages(caller, "At what time can I buy bread?")
    assert [item["filename"] for item in passages] == ["hours.md", "parking.md"]
    assert passages[0] == {
        "document_id": hours["id"],
        "knowledge_base_id": base,
        "filename": "hours.md",
        "chunk_index": 0,
        "content": "Opening hours\n\nThe bakery is open from seven to six, but not on Sundays.",
        "score": passages[0]["score"],
    }
    assert float(str(passages[0]["score"])) > float(str(passages[1]["score"]))
    assert len(await search_passages(caller, "anything", top_k=1)) == 1


async def test_a_search_is_limited_to_the_named_knowledge_bases(caller: Caller) -> None:
    first, second, empty = await create_base(caller), await create_base(caller), await create_base(caller)
    await add_document(caller, first, HOURS, "first.md")
    await add_document(caller, second, HOURS, "second.md")

    async def names(*bases: str) -> set[object]:
        return {
            item["filename"] for item in await search_passages(caller, "opening hours", knowledge_base_ids=list(bases))
        }

    assert await names(first) == {"first.md"}
    assert await names(second, empty) == {"second.md"}
    assert await names(first, second, first) == {"first.md", "second.md"}
    assert await names(empty) == set()
    assert await names() == set()
    assert {item["filename"] for item in await search_passages(caller, "opening hours")} == {"first.md", "second.md"}


async def test_an_invalid_search_names_the_field(caller: Caller) -> None:
    for body, field in (
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "a", "top_k": 0}, "top_k"),
        ({"query": "a", "top_k": 51}, "top_k"),
        ({"query": "a", "knowledge_base_ids": ["nobody's"]}, "knowledge_base_ids"),
        ({"query": "a", "knowledge_base_ids": "x"}, "knowledge_base_ids"),
    ):
        refused = await caller.post("/v1/knowledge-bases/search", body)
        assert refused.status == 422
        assert [str(name).partition(".")[0] for name in list_error_fields(refused)] == [field]


async def test_organizations_with_equal_texts_never_see_each_others_results(caller: Caller, stranger: Caller) -> None:
    own_base, foreign_base = await create_base(caller), await create_base(stranger)
    for owner, base in ((caller, own_base), (stranger, foreign_base)):
        await add_document(owner, base, HOURS, f"{owner.organization_id}.md")
    secret = await add_document(stranger, foreign_base, "The code of the safe is 48151623.", "safe.txt")
    for forged in (foreign_base, str(secret["id"]), "x') or ('1'='1", str(uuid4()), ""):
        refused = await caller.post(
            "/v1/knowledge-bases/search",
            {"query": "code of the safe 48151623", "knowledge_base_ids": [own_base, forged]},
        )
        assert (refused.status, list_error_fields(refused)) == (422, ["knowledge_base_ids"])
    passages = await search_passages(caller, "code of the safe 48151623", top_k=50)
    assert [item["filename"] for item in passages] == [f"{caller.organization_id}.md"]
    assert {item["knowledge_base_id"] for item in passages} == {own_base}
    assert (await caller.send("DELETE", f"/v1/documents/{secret['id']}")).status == 404
    assert (await caller.send("DELETE", f"/v1/knowledge-bases/{foreign_base}")).status == 404
    assert len(await search_passages(stranger, "code of the safe 48151623")) == 2


async def test_reading_and_writing_require_their_scopes(organizations: Organizations, caller: Caller) -> None:
    base = await create_base(caller)
    reader = await organizations.create_key(caller.organization_id, scopes=["agents:read"])
    writer = await organizations.create_key(caller.organization_id, scopes=["agents:write"])
    assert (await reader.post("/v1/knowledge-bases", {"name": "x"})).status == 403
    assert (
        await reader.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "a.txt", "content": "x"})
    ).status == 403
    assert (await reader.post("/v1/knowledge-bases/search", {"query": "x"})).status == 200
    assert (await writer.get(f"/v1/knowledge-bases/{base}")).status == 403
    assert (await writer.post("/v1/knowledge-bases/search", {"query": "x"})).status == 403


async def test_deleting_a_knowledge_base_deletes_its_documents_at_once(caller: Caller) -> None:
    base = await create_base(caller)
    document = await add_document(caller, base, HOURS)
    assert (await caller.send("DELETE", f"/v1/knowledge-bases/{base}")).status == 204
    assert (await caller.get(f"/v1/documents/{document['id']}")).status == 404
    assert await search_passages(caller, "opening hours") == []


async def test_a_repeated_idempotency_key_creates_one_document(caller: Caller) -> None:
    base = await create_base(caller)
    body = {"filename": "hours.md", "content": HOURS}
    path = f"/v1/knowledge-bases/{base}/documents"
    first, again = [await caller.send("POST", path, body, Idempotency_Key="one") for _ in range(2)]
    assert first.status == again.status == 201
    assert first.json == again.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (await caller.get(path)).json["total"] == 1


async def test_documents_added_concurrently_are_all_found(caller: Caller) -> None:
    base = await create_base(caller)
    await asyncio.gather(
        *(
            add_document(caller, base, f"The color of house {number} is {number * 1111}.", f"{number}.txt")
            for number in range(1, 7)
        )
    )
    passages = await search_passages(caller, "Which house is 3333?", top_k=50)
    assert len(passages) == 6
    assert passages[0]["filename"] == "3.txt"


async def test_a_document_without_an_embedding_model_is_kept_as_failed(runtime: Runtime, caller: Caller) -> None:
    base = await create_base(caller)
    requests = [
        provider
        for provider in list_embedded_providers(runtime.registry)
        if provider.capability is not Capability.EMBEDDING
    ]
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, requests)
    document = await add_document(caller, base, HOURS)
    assert (document["status"], document["error_message"]) == ("failed", "the organization has no embedding provider")
    assert await search_passages(caller, "opening hours") == []


async def test_files_are_sent_as_base64(caller: Caller) -> None:
    base = await create_base(caller)
    data = base64.b64encode(b"%PDF-1.4 broken").decode()
    refused = await caller.post(f"/v1/knowledge-bases/{base}/documents", {"filename": "a.pdf", "content": data})
    assert (refused.status, list_error_fields(refused)) == (422, ["content"])
    assert "not a readable PDF file" in str(refused.json["detail"])
