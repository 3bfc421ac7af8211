"""Automations through the API: the specification's fields, and each error named by its place."""

from uuid import uuid4

import pytest
from pydantic import JsonValue
from switchboard.plugin_sdk import ForbiddenAddress

from tests.fixtures.app import ApiResponse, Caller, Organizations, fresh_number
from tests.fixtures.automations import CONTACT, TAG, create_automation, get_automation, list_runs
from tests.fixtures.json_access import Json, objects_at, text_at
from tests.fixtures.webhooks import list_items

FIELDS = {
    "id",
    "name",
    "description",
    "enabled",
    "trigger_type",
    "trigger_filters",
    "conditions",
    "actions",
    "run_count",
    "last_run_at",
    "created_at",
}
PATH = "/v1/automations"
SMS: Json = {"type": "send_sms", "params": {"to_number": CONTACT, "body": "Hello"}}


def read_errors(response: ApiResponse) -> dict[str, str]:
    """Return the invalid fields of a 422 with their messages."""
    assert (response.status, response.json["code"]) == (422, "validation_error"), response.body
    errors = response.json["errors"]
    assert isinstance(errors, list)
    return {text_at(error, "field"): text_at(error, "message") for error in objects_at(errors)}


async def read_refusal(caller: Caller, *actions: Json, **fields: object) -> dict[str, str]:
    return read_errors(
        await caller.post(PATH, {"name": "x", "trigger_type": "sms.received", "actions": actions or [TAG], **fields})
    )


async def test_automation_life_cycle(caller: Caller) -> None:
    conditions: list[JsonValue] = [
        {"field": "data.body", "operator": "contains", "value": "refund"},
        {"field": "data.contact_name", "operator": "exists", "value": None},
    ]
    fields: Json = {
        "name": "Refunds",
        "description": "Who wants money back.",
        "trigger_type": "sms.received",
        "trigger_filters": {"data.direction": "inbound"},
        "conditions": conditions,
        "actions": [TAG, {"type": "wait", "params": {"seconds": 60}}],
        "enabled": True,
    }
    created = (await caller.post(PATH, fields)).json
    assert set(created) == FIELDS
    assert created == {
        **fields,
        "id": created["id"],
        "run_count": 0,
        "last_run_at": None,
        "created_at": created["created_at"],
    }
    assert await get_automation(caller, created) == created
    assert list_items(await caller.get(PATH)) == [created]
    assert await list_runs(caller, created) == []
    path = f"{PATH}/{created['id']}"
    changed: Json = {
        "enabled": False,
        "description": None,
        "trigger_type": "call.completed",
        "conditions": [{"field": "id", "operator": "exists"}],
    }
    updated = await caller.send("PATCH", path, changed)
    assert updated.status == 200
    assert updated.json == {**created, **changed, "conditions": [{"field": "id", "operator": "exists", "value": None}]}
    assert (await caller.send("PATCH", path, {})).json == updated.json
    assert (await caller.send("DELETE", path)).status == 204
    for method, url, body in (
        ("GET", path, None),
        ("PATCH", path, {}),
        ("DELETE", path, None),
        ("GET", f"{path}/runs", None),
    ):
        assert (await caller.send(method, url, body)).status == 404


async def test_omitted_fields_have_defaults(caller: Caller) -> None:
    automation = await create_automation(caller)
    assert (
        automation["description"],
        automation["trigger_filters"],
        automation["conditions"],
        automation["enabled"],
    ) == (None, {}, [], True)
    assert read_errors(await caller.post(PATH, {})).keys() == {"name", "trigger_type", "actions"}
    assert (await read_refusal(caller, name=" ", trigger_type="sms.recieved")).keys() == {"name", "trigger_type"}


async def test_lists_are_newest_first_and_stable_under_paging(caller: Caller) -> None:
    automation_ids = [str((await create_automation(caller, name=f"Number {number}"))["id"]) for number in range(5)]
    pages = [await caller.get(f"{PATH}?limit=2&offset={offset}") for offset in (0, 2, 4)]
    assert [item["id"] for page in pages for item in list_items(page)] == automation_ids[::-1]
    assert [page.json["total"] for page in pages] == [5, 5, 5]
    assert (await caller.get(f"{PATH}?limit=101")).status == 422


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("trigger_type", "call.exploded", "trigger_type"),
        ("trigger_type", None, "trigger_type"),
        ("actions", [], "actions"),
        ("actions", [TAG] * 21, "actions"),
        ("actions", [{"params": {}}], "actions.0.type"),
        ("actions", [TAG, {**TAG, "when": 1}], "actions.1.when"),
        ("trigger_filters", {"direction": "inbound"}, "trigger_filters"),
        ("trigger_filters", [], "trigger_filters"),
        (
            "conditions",
            [{"field": "data.a", "operator": "eq"}, {"field": "body", "operator": "eq"}],
            "conditions.1.field",
        ),
        ("conditions", [{"field": "data..a", "operator": "eq"}], "conditions.0.field"),
        ("conditions", [{"field": "event.name", "operator": "eq"}], "conditions.0.field"),
        ("conditions", [{"field": "data.a", "operator": "like", "value": 1}], "conditions.0.operator"),
        ("conditions", [{"field": "data.a", "operator": "in", "value": "a"}], "conditions.0.value"),
        ("conditions", [{"field": "data.a", "operator": "gt"}], "conditions.0.value"),
        ("conditions", [{"field": "data.a", "operator": "gt", "value": True}], "conditions.0.value"),
        ("conditions", [{"field": "data.a", "operator": "contains", "value": ""}], "conditions.0.value"),
        ("conditions", [{"field": "data.a", "operator": "eq", "values": 1}], "conditions.0.values"),
        ("name", "a\0b", "name"),
        ("enabled", "yes", "enabled"),
        ("nmae", "typo", "nmae"),
    ],
)
async def test_a_validation_error_names_its_place(caller: Caller, field: str, value: JsonValue, fault: str) -> None:
    assert (await read_refusal(caller, **{field: value})).keys() == {fault}
    automation = await create_automation(caller)
    assert read_errors(await caller.send("PATCH", f"{PATH}/{automation['id']}", {field: value})).keys() == {fault}
    assert await get_automation(caller, automation) == automation


async def test_every_invalid_action_is_reported(caller: Caller) -> None:
    errors = await read_refusal(
        caller,
        {"type": "send_fax"},
        {"type": "tag_contact", "params": {"phone_number": "5550100001", "tag": "a, b"}},
        {"type": "tag_contact", "params": {"phone_number": "{{ data.from_number }}", "tga": "a"}},
        TAG,
        {"type": "wait", "params": {"seconds": 0}},
        {"type": "wait", "params": {"seconds": "{{ data.seconds }}", "minutes": 1}},
        {"type": "http_request", "params": {"url": "http://127.0.0.1:1/", "method": "POST"}},
        {"type": "http_request", "params": {"url": "https://example.com/", "method": "BREW"}},
        {
            "type": "http_request",
            "params": {"url": "https://{{ data.host }}/", "headers": {"Host": "x", "X A": "y", "X-B": "a\r\nb"}},
        },
        {
            "type": "http_request",
            "params": {"url": "https://example.com/", "headers": {"X-C": "{{ data. }}"}, "body": {"a": ["{{ b }}"]}},
        },
        {"type": "upsert_contact", "params": {"phone_number": CONTACT, "is_favorite": "perhaps", "name": "x" * 256}},
        {"type": "start_call", "params": {"to_number": "{{ data.from_number }}"}},
    )
    assert errors.keys() == {
        "actions.0.type",
        "actions.1.params.phone_number",
        "actions.1.params.tag",
        "actions.2.params.tag",
        "actions.2.params.tga",
        "actions.4.params.seconds",
        "actions.5.params.minutes",
        "actions.6.params.url",
        "actions.7.params.method",
        "actions.8.params.headers.Host",
        "actions.8.params.headers.X A",
        "actions.8.params.headers.X-B",
        "actions.9.params.headers.X-C",
        "actions.9.params.body.a.0",
        "actions.10.params.is_favorite",
        "actions.10.params.name",
        "actions.11.params.agent_id",
        "actions.11.params.from_number_id",
    }
    assert "send_sms" in errors["actions.0.type"]
    assert errors["actions.6.params.url"] == str(ForbiddenAddress())
    assert "there is no b" in errors["actions.9.params.body.a.0"]


@pytest.mark.parametrize(
    ("template", "about"),
    [
        ("{% for x in data %}x{% endfor %}", "statements"),
        ("{% raw %}x{% endraw %}", "statements"),
        ("{{ data.body", "closed"),
        ("{{ }}", "Expected an expression"),
        ("{{ body }}", "no body"),
        ("{{ range(9) }}", "calls"),
        ("{{ cycler }}", "no cycler"),
        ("{{ data.body.upper() }}", "calls"),
        ("{{ self }}", "no self"),
        ("{{ 9 ** 9 ** 9 }}", "pow"),
        ("{{ '%9999999999d' % 1 }}", "mod"),
        ("{{ '%9999999999d' | format(1) }}", "no filter format"),
        ("{{ data | attr('x') }}", "no filter attr"),
        ("{{ data.body | center(999999999) }}", "no filter center"),
        ("{{ data.body | truncate(len=3) }}", "filter truncate"),
        ("{{ data is callable }}", "no test callable"),
        ("{{ '\\u0000' }}", "NUL"),
        ("{{ '\\ud800' }}", "unpaired surrogate"),
        ("{{ 1e999 }}", "infinite number"),
        ("{{ " + "(" * 150 + "1" + ")" * 150 + " }}", "nested too deeply"),
        ("{{ " + "-" * 400 + "1 }}", "too many parts"),
        ("{{ data." + "a" * 600 + " }}", "longer than"),
        ("x" * 20_000 + "{{ id }}", "longer than"),
        ("{{ data | join(*data.list) }}", "* is not allowed"),
    ],
)
async def test_harmful_or_broken_templates_are_refused(caller: Caller, template: str, about: str) -> None:
    errors = await read_refusal(
        caller, TAG, {"type": "http_request", "params": {"url": "https://example.com/", "body": {"text": template}}}
    )
    assert errors.keys() == {"actions.1.params.body.text"}
    assert about in errors["actions.1.params.body.text"]


async def test_automation_size_is_limited(caller: Caller) -> None:
    request: Json = {"url": "https://example.com/", "body": "{{ id }}" * 201}
    assert (await read_refusal(caller, {"type": "http_request", "params": request})).keys() == {"actions"}
    assert (
        await read_refusal(caller, {"type": "http_request", "params": {**request, "body": "x" * 64_000}})
    ).keys() == {"actions.0.params"}
    condition: Json = {"field": "id", "operator": "exists"}
    assert (await read_refusal(caller, conditions=[condition] * 51)).keys() == {"conditions"}
    assert (await read_refusal(caller, trigger_filters={f"data.{number}": 1 for number in range(51)})).keys() == {
        "trigger_filters"
    }


async def test_actions_accept_only_ids_of_the_same_organization(caller: Caller, stranger: Caller) -> None:
    foreign_number = (await stranger.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    foreign_agent = (await stranger.post("/v1/agents", {"name": "Theirs"})).json["id"]
    own_number = (await caller.post("/v1/phone-numbers", {"phone_number": fresh_number()})).json["id"]
    own_agent = (await caller.post("/v1/agents", {"name": "Mine"})).json["id"]

    def actions(number: JsonValue, agent: JsonValue) -> list[Json]:
        call: Json = {"from_number_id": number, "agent_id": agent, "to_number": CONTACT}
        return [
            {**SMS, "params": {"to_number": CONTACT, "body": "Hello", "from_number_id": number}},
            {"type": "start_call", "params": call},
        ]

    await create_automation(caller, *actions(own_number, own_agent))
    await create_automation(caller, *actions("{{ data.number }}", "{{ data.agent }}"))
    for number, agent in ((foreign_number, foreign_agent), (str(uuid4()), str(uuid4())), ("x", "x")):
        errors = await read_refusal(caller, *actions(number, agent))
        assert errors == {
            "actions.0.params.from_number_id": "is not an active phone number of the organization",
            "actions.1.params.from_number_id": "is not an active phone number of the organization",
        }
        assert await read_refusal(caller, *actions(own_number, agent)) == {
            "actions.1.params.agent_id": "is not an agent of the organization"
        }
    foreign_ids: Json = {
        "name": "Theirs",
        "agent_id": foreign_agent,
        "phone_number_id": foreign_number,
        "contacts": [{"phone_number": CONTACT}],
    }
    foreign_campaign = (await stranger.post("/v1/campaigns", foreign_ids)).json["id"]
    for campaign in (foreign_campaign, str(uuid4()), "x"):
        errors = await read_refusal(
            caller, {"type": "add_to_campaign", "params": {"campaign_id": campaign, "phone_number": CONTACT}}
        )
        assert errors == {"actions.0.params.campaign_id": "is not a campaign of the organization"}


async def test_automations_of_other_organizations_are_not_found(caller: Caller, stranger: Caller) -> None:
    automation = await create_automation(caller)
    path = f"{PATH}/{automation['id']}"
    for method, url, body in (
        ("GET", path, None),
        ("PATCH", path, {"name": "x"}),
        ("DELETE", path, None),
        ("GET", f"{path}/runs", None),
    ):
        assert (await stranger.send(method, url, body)).status == 404
    assert list_items(await stranger.get(PATH)) == []
    assert await get_automation(caller, automation) == automation


async def test_reading_and_writing_require_their_scopes(organizations: Organizations) -> None:
    reader = await organizations.create(scopes=["campaigns:read"])
    writer = await organizations.create_key(reader.organization_id, scopes=["campaigns:write"])
    automation = await create_automation(writer, {"type": "wait", "params": {"seconds": 1}})
    path = f"{PATH}/{automation['id']}"
    for url in (PATH, path, f"{path}/runs"):
        assert ((await reader.get(url)).status, (await writer.get(url)).status) == (200, 403)
    body = {"name": "x", "trigger_type": "sms.sent", "actions": [TAG]}
    for method, url, data in (("POST", PATH, body), ("PATCH", path, {}), ("DELETE", path, None)):
        assert (await reader.send(method, url, data)).status == 403
