"""Contacts through the API: the specification's fields, and search."""

from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlmodel import select
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.models import ContactSearch
from switchboard.resources.contacts.queries import get_contact_name
from switchboard.resources.contacts.schemas import ContactCreate, ContactQuery
from switchboard.resources.contacts.search import search_contacts
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.json_access import Json, objects_at

ADA: Json = {
    "phone_number": "+15550100001",
    "name": "Ada Lovelace",
    "email": "ada@example.com",
    "company": "Analytical Engines",
    "notes": "Likes tea.",
    "tags": "vip, maths",
    "address": "12 Mill Lane",
    "role": "Programmer",
    "is_favorite": True,
}
TEXTS = ("name", "email", "company", "notes", "tags", "address", "role")
BAD_FIELDS = [
    ("phone_number", "5550100001"),
    ("phone_number", "+1 555 010 0001"),
    ("phone_number", 15550100001),
    ("phone_number", None),
    ("is_favorite", None),
    ("is_favorite", "yes"),
    ("notes", "x" * 10_001),
    ("address", "x" * 1_001),
    ("name", "x" * 256),
    ("email", "x" * 256),
    ("company", "x" * 256),
    ("tags", "x" * 256),
    ("role", "x" * 256),
    ("tags", ["vip"]),
    ("name", "a\0b"),
    ("name", 1),
    ("nmae", "typo"),
]


async def add_contact(caller: Caller, **fields: object) -> Json:
    created = await caller.post("/v1/contacts", fields)
    assert created.status == 201, created.body
    return created.json


async def search_names(caller: Caller, query: str) -> set[object]:
    """Return the names in a list, and check its `total`."""
    response = await caller.get(f"/v1/contacts?{query}")
    assert response.status == 200, response.body
    items = response.json["items"]
    assert isinstance(items, list)
    assert response.json["total"] == len(items)
    return {item["name"] for item in objects_at(items)}


async def test_contact_life_cycle(caller: Caller) -> None:
    created = await add_contact(caller, **ADA)
    assert set(created) == {"id", "created_at", "updated_at", *ADA}
    assert {name: created[name] for name in ADA} == ADA
    path = f"/v1/contacts/{created['id']}"
    assert (await caller.get(path)).json == created
    updated = await caller.send("PATCH", path, {"name": "Ada King", "is_favorite": False})
    assert updated.status == 200
    assert {
        **created,
        "name": "Ada King",
        "is_favorite": False,
        "updated_at": updated.json["updated_at"],
    } == updated.json
    assert str(updated.json["updated_at"]) > str(created["updated_at"])
    assert (await caller.send("DELETE", path)).status == 204
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        assert (await caller.send(method, path, body)).status == 404
    assert (await caller.get("/v1/contacts?search=ada")).json["total"] == 0


async def test_only_the_phone_number_is_required(caller: Caller) -> None:
    created = await add_contact(caller, phone_number="+15550100001")
    assert {name: created[name] for name in TEXTS} == dict.fromkeys(TEXTS)
    assert created["is_favorite"] is False
    assert (await caller.post("/v1/contacts", {"name": "Ada"})).status == 422


async def test_null_clears_a_field_and_omitted_fields_stay(caller: Caller) -> None:
    path = f"/v1/contacts/{(await add_contact(caller, **ADA))['id']}"
    assert (await caller.send("PATCH", path, {})).json["name"] == "Ada Lovelace"
    for name in TEXTS:
        assert (await caller.send("PATCH", path, {name: None})).json[name] is None
    assert (await caller.get(path)).json["phone_number"] == ADA["phone_number"]


async def test_a_number_belongs_to_one_contact(caller: Caller, stranger: Caller) -> None:
    await add_contact(caller, phone_number="+15550100001")
    again = await caller.post("/v1/contacts", {"phone_number": "+15550100001"})
    assert (again.status, again.json["code"]) == (409, "conflict")
    other = await add_contact(caller, phone_number="+15550100002", name="Grace")
    conflict = await caller.send(
        "PATCH", f"/v1/contacts/{other['id']}", {"phone_number": "+15550100001", "name": "Ada"}
    )
    assert (conflict.status, conflict.json["code"]) == (409, "conflict")
    assert (await caller.get(f"/v1/contacts/{other['id']}")).json == other
    assert (await caller.send("PATCH", f"/v1/contacts/{other['id']}", {"phone_number": "+15550100002"})).status == 200
    assert (await stranger.post("/v1/contacts", {"phone_number": "+15550100001"})).status == 201


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    contact_id = (await add_contact(caller, phone_number="+15550100009"))["id"]
    for response in (
        await caller.post("/v1/contacts", {"phone_number": "+15550100001", field: value}),
        await caller.send("PATCH", f"/v1/contacts/{contact_id}", {field: value}),
    ):
        assert response.status == 422, response.body
        assert [error["field"] for error in objects_at(response.json, "errors")] == [field]


@pytest.mark.parametrize("search", ["", "search=person&"])
async def test_lists_and_searches_are_newest_first_and_paged(caller: Caller, search: str) -> None:
    for index in range(5):
        await add_contact(caller, phone_number=f"+1555010000{index}", name=f"person {index}")
    page = (await caller.get(f"/v1/contacts?{search}limit=2&offset=1")).json
    assert [item["name"] for item in objects_at(page, "items")] == ["person 3", "person 2"]
    assert (page["total"], page["limit"], page["offset"]) == (5, 2, 1)
    empty_page = (await caller.get(f"/v1/contacts?{search}offset=9")).json
    assert (empty_page["items"], empty_page["total"]) == ([], 5)
    for query in ("limit=0", "limit=101", "offset=-1", f"search={'x' * 256}", "serach=x"):
        assert (await caller.get(f"/v1/contacts?{query}")).status == 422, query


async def test_searches_with_many_or_few_matches_are_paged(caller: Caller, runtime: Runtime) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        for index in range(120):
            name = f"rare {index}" if index < 4 else f"usual {index}"
            await contacts.create_contact(session, ContactCreate(phone_number=f"+1555010{index:04d}", name=name))
    for word, expected in (("rare", ["rare 2", "rare 1"]), ("usual", ["usual 118", "usual 117"])):
        page = (await caller.get(f"/v1/contacts?search={word}&limit=2&offset=1")).json
        assert [item["name"] for item in objects_at(page, "items")] == expected
    deep_page = (await caller.get("/v1/contacts?search=usual&limit=3&offset=114")).json
    assert [item["name"] for item in objects_at(deep_page, "items")] == ["usual 5", "usual 4"]
    assert deep_page["total"] == 116


@pytest.mark.parametrize("phone", ["%2B15550100001", "+15550100001", "15550100001"])
async def test_the_phone_filter_matches_exactly_with_an_escaped_or_plain_plus(caller: Caller, phone: str) -> None:
    await add_contact(caller, **ADA)
    await add_contact(caller, phone_number="+15550100002", name="Ada Byron")
    assert await search_names(caller, f"phone={phone}") == {"Ada Lovelace"}
    assert await search_names(caller, f"phone={phone}&search=ada") == {"Ada Lovelace"}
    assert await search_names(caller, f"phone={phone}&search=byron") == set()
    assert await search_names(caller, "phone=%2B1555010000") == set()


@pytest.mark.parametrize(
    "search",
    [
        "ada",
        "ADA",
        "lovelace ada",
        "love",
        "lace",
        "analytical",
        "ada@example",
        "tea",
        "maths vip",
        "0100001",
        "%2B1555",
        "555 ada tea",
        "a",
        "ov",
        "  ada   lovelace ",
        "ada ada",
        "%C3%A1da",
        "l%C3%B6velace",
    ],
)
async def test_a_match_contains_every_search_word(caller: Caller, search: str) -> None:
    await add_contact(caller, **ADA)
    await add_contact(caller, phone_number="+46701740605", name="Grx")
    assert await search_names(caller, f"search={search}") == {"Ada Lovelace"}


@pytest.mark.parametrize(
    "search",
    ["ada grace", "lovelaces", "adalovelace", "mill", "programmer", "%", "_", "ad_", "a%25a", "%5C", "'", "0100002"],
)
async def test_an_unmatched_search_finds_nothing(caller: Caller, search: str) -> None:
    await add_contact(caller, **ADA)
    search = search if len(search) > 1 and search != "%" else search.replace("%", "%25")
    assert await search_names(caller, f"search={search}") == set()


@pytest.mark.parametrize(
    ("name", "search"),
    [
        ("Élodie Müller-Strauß", "elodie muller strauss"),
        ("Elodie", "%C3%89LODIE"),
        ("Søren Łukasz", "soren LUKASZ"),
        ("İsmail Işık", "ismail isik"),
        ("Ελένη", "%CE%95%CE%9B%CE%95%CE%9D%CE%97"),
        ("山田太郎", "%E5%A4%AA"),
        ("e\u0301lan", "%C3%A9lan"),
        ("Zoë", "zoe"),
        ("ﬁnch", "finch"),
    ],
)
async def test_search_ignores_case_and_accents(caller: Caller, name: str, search: str) -> None:
    await add_contact(caller, phone_number="+15550100001", name=name)
    await add_contact(caller, phone_number="+15550100002", name="Somebody")
    assert await search_names(caller, "search=" + search.replace("-", "")) == {name}


@pytest.mark.parametrize("sign", ["%", "_", "\\", "'", '"', "100%", "a_b", "\\%", "[", "*"])
async def test_wildcards_are_literal(caller: Caller, sign: str) -> None:
    await add_contact(caller, phone_number="+15550100001", name="With", notes=f"so {sign} it is")
    await add_contact(caller, phone_number="+15550100002", name="Without", notes="100 axb")
    assert await search_names(caller, "search=" + "".join(f"%{byte:02X}" for byte in sign.encode())) == {"With"}


@pytest.mark.parametrize("search", ["%20", "%C2%B4", "%CC%81"])
async def test_a_search_without_words_finds_all_contacts(caller: Caller, search: str) -> None:
    await add_contact(caller, **ADA)
    assert await search_names(caller, f"search={search}") == {"Ada Lovelace"}


async def test_a_search_finds_the_new_values_of_an_updated_contact_only(caller: Caller) -> None:
    path = f"/v1/contacts/{(await add_contact(caller, **ADA))['id']}"
    await caller.send("PATCH", path, {"company": "Difference Engines", "notes": None, "phone_number": "+15550100003"})
    for search, count in (("difference", 1), ("analytical", 0), ("tea", 0), ("0100003", 1), ("0100001", 0), ("vip", 1)):
        assert (await caller.get(f"/v1/contacts?search={search}")).json["total"] == count, search


async def test_long_notes_are_searched_completely(caller: Caller) -> None:
    notes = " ".join(f"word{number}" for number in range(1_100)) + " needle"
    await add_contact(caller, phone_number="+15550100001", name="Long", notes=notes)
    await add_contact(caller, phone_number="+15550100002", name="One word", notes="é" * 10_000)
    assert await search_names(caller, "search=word1099 needle") == {"Long"}
    assert await search_names(caller, "search=long needle") == {"Long"}
    assert await search_names(caller, "search=eeeeee") == {"One word"}


async def test_contacts_of_other_organizations_are_never_visible(caller: Caller, stranger: Caller) -> None:
    contact_id = (await add_contact(caller, **ADA))["id"]
    for query in ("", "search=ada", "search=a", "phone=%2B15550100001"):
        assert await search_names(stranger, query) == set()
    for method, body in (("GET", None), ("PATCH", {"name": "Stolen"}), ("DELETE", None)):
        foreign = await stranger.send(method, f"/v1/contacts/{contact_id}", body)
        unknown = await stranger.send(method, f"/v1/contacts/{uuid4()}", body)
        assert foreign.status == unknown.status == 404
        assert {**foreign.json, "request_id": ""} == {**unknown.json, "request_id": ""}
    assert await search_names(caller, "search=ada") == {"Ada Lovelace"}


async def test_the_search_index_is_used_under_row_level_security(
    caller: Caller, stranger: Caller, runtime: Runtime
) -> None:
    await add_contact(caller, **ADA)
    await add_contact(stranger, **ADA)
    async with runtime.database.write(caller.organization_id) as session:
        matches, total = await search_contacts(session, ContactQuery(search="nobody"))
        assert (matches, total) == ([], 0)
        assert [row.organization_id for row in (await session.exec(select(ContactSearch))).all()] == [
            caller.organization_id
        ]
        connection = await session.connection()
        await connection.execute(text("set local enable_seqscan = off"))
        plan = await connection.execute(text("explain select id from contact_search where content like '%ada%'"))
        assert "ix_contact_search_grams" in "\n".join(plan.scalars())


async def test_a_contacts_name_is_found_by_number(caller: Caller, runtime: Runtime) -> None:
    await add_contact(caller, **ADA)
    await add_contact(caller, phone_number="+15550100002")
    async with runtime.database.write(caller.organization_id) as session:
        assert await get_contact_name(session, "+15550100001") == "Ada Lovelace"
        assert await get_contact_name(session, "+15550100002") is None
        assert await get_contact_name(session, "+15550100003") is None


async def test_endpoints_require_their_scopes(organizations: Organizations, caller: Caller) -> None:
    reader = await organizations.create_key(caller.organization_id, scopes=["contacts:read"])
    writer = await organizations.create_key(caller.organization_id, scopes=["contacts:write"])
    contact_id = (await add_contact(writer, **ADA))["id"]
    assert (await reader.get("/v1/contacts")).status == 200
    assert (await reader.get(f"/v1/contacts/{contact_id}")).status == 200
    assert (await writer.get("/v1/contacts")).status == 403
    for method, path in (("POST", ""), ("PATCH", f"/{contact_id}"), ("DELETE", f"/{contact_id}")):
        refused = await reader.send(
            method, f"/v1/contacts{path}", {"phone_number": "+15550100002"} if method != "DELETE" else None
        )
        assert (refused.status, refused.json["code"]) == (403, "insufficient_scope")
