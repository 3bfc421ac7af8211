"""Updates of all resources: a resource that is sent back as it was read stays as it is (docs/decisions/0058)."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import pytest
from sqlmodel import col, func, select
from switchboard.apps.server.app import create_routes
from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.web.openapi import iterate_endpoints
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.json_access import Json, objects_at

HOURS = {"timezone": "Europe/Berlin", "slots": [{"days": ["mon"], "start": "09:00", "end": "17:00"}]}
ADDRESS = "https://example.com/hook"


async def create(caller: Caller, path: str, body: Json) -> Json:
    response = await caller.post(path, body)
    assert response.status == 201, response.body
    return response.json


async def create_agent(caller: Caller) -> Json:
    base = await create(caller, "/v1/knowledge-bases", {"name": "Bakery"})
    body: Json = {
        "name": "Front desk",
        "webhook_url": ADDRESS,
        "webhook_secret": "s3cret",
        "llm_temperature": 1,
        "pronunciations": {"Siobhan": "Shivawn"},
        "knowledge_base_ids": [base["id"]],
        "tools": [{"name": "find_order", "description": "Finds an order.", "url": ADDRESS}],
        "disabled_tools": ["transfer_call"],
        "allowed_numbers": ["+15550100001"],
        "extraction_schema": {"properties": {"name": {"type": "string", "enum": ["Ada"]}, "age": {"type": "number"}}},
        "redaction": {"kinds": ["card_number"]},
        "disclosure": {},
        "turn_detection": {"mode": "text"},
        "voicemail_policy": {"action": "leave_message", "message": "Call us."},
    }
    return await create(caller, "/v1/agents", body)


async def create_phone_number(caller: Caller) -> Json:
    agent = await create(caller, "/v1/agents", {"name": "Front desk"})
    number = await create(
        caller, "/v1/phone-numbers", {"phone_number": fresh_number(), "inbound_agent_id": agent["id"]}
    )
    fields = {"schedule": HOURS, "forward_number": "+15550100001", "forward_webhook_url": ADDRESS}
    assert (await caller.send("PUT", f"/v1/phone-numbers/{number['id']}", fields)).status == 200
    return number


async def create_contact(caller: Caller) -> Json:
    return await create(caller, "/v1/contacts", {"phone_number": "+15550100001", "name": "Ada", "is_favorite": True})


async def create_automation(caller: Caller) -> Json:
    tag: Json = {"type": "tag_contact", "params": {"phone_number": "{{ data.from_number }}", "tag": "refund"}}
    body: Json = {
        "name": "Refunds",
        "trigger_type": "sms.received",
        "trigger_filters": {"data.direction": "inbound"},
        "conditions": [{"field": "data.body", "operator": "contains", "value": "refund"}],
        "actions": [tag],
    }
    return await create(caller, "/v1/automations", body)


async def create_widget(caller: Caller) -> Json:
    agent = await create(caller, "/v1/agents", {"name": "Front desk"})
    body: Json = {
        "name": "Website",
        "agent_id": agent["id"],
        "allowed_origins": ["https://www.example.com"],
        "title": "Ask us",
        "greeting": "Good morning.",
        "language": "de",
        "max_spend_per_day": 2.1,
    }
    return await create(caller, "/v1/widgets", body)


async def create_calendar(caller: Caller) -> Json:
    return await create(caller, "/v1/calendars", {"provider": "local", "name": "Front desk"})


async def create_appointment_type(caller: Caller) -> Json:
    calendars = [(await create_calendar(caller))["id"] for _ in range(2)]
    day: Json = {"start": "10:00", "end": "12:00"}
    hours: Json = {
        "timezone": "Europe/Berlin",
        "slots": [{"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "start": "09:00", "end": "17:00"}],
        "holidays": ["2026-12-25"],
        "special_days": [{"date": "2026-12-24", "hours": [day]}],
    }
    body: Json = {
        "name": "Visit",
        "calendar_ids": calendars,
        "calendar_mode": "all",
        "duration_minutes": 45,
        "grid_minutes": 15,
        "buffer_before_minutes": 5,
        "buffer_after_minutes": 10,
        "hours": hours,
        "daily_limit": 8,
        "fields": [{"name": "reason", "description": "What is it about?", "required": True}],
    }
    return await create(caller, "/v1/appointment-types", body)


async def create_appointment(caller: Caller) -> Json:
    kind = await create_appointment_type(caller)
    free = objects_at((await caller.get(f"/v1/appointment-types/{kind['id']}/availability")).json, "items")
    person: Json = {"phone_number": "+15550100001", "name": "Ada", "fields": {"reason": "Bread"}}
    return await create(caller, "/v1/appointments", {"slot_token": free[0]["slot_token"], **person})


async def create_webhook_endpoint(caller: Caller) -> Json:
    return await create(caller, "/v1/webhook-endpoints", {"url": ADDRESS, "events": ["call.completed"]})


async def create_conversation(caller: Caller) -> Json:
    number = await create(caller, "/v1/phone-numbers", {"phone_number": fresh_number()})
    body: Json = {"from_number_id": number["id"], "to_number": "+15550100001", "body": "Your bread is ready."}
    message = await create(caller, "/v1/sms", body)
    return (await caller.get(f"/v1/sms/conversations/{message['conversation_id']}")).json


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with every field set, and a change of one field."""

    create: Callable[[Caller], Awaitable[Json]]
    change: Json


RESOURCES = {
    "agents": Resource(create_agent, {"name": "Night desk"}),
    "phone-numbers": Resource(create_phone_number, {"friendly_name": "Night desk"}),
    "contacts": Resource(create_contact, {"company": "Analytical Engines"}),
    "automations": Resource(create_automation, {"enabled": False}),
    "sms/conversations": Resource(create_conversation, {"resolved": True}),
    "calendars": Resource(create_calendar, {"name": "Back office"}),
    "appointment-types": Resource(create_appointment_type, {"daily_limit": None}),
    "appointments": Resource(create_appointment, {"name": "Ada Lovelace"}),
    "widgets": Resource(create_widget, {"position": "left"}),
    "webhook-endpoints": Resource(create_webhook_endpoint, {"description": "CRM"}),
}


def list_updates() -> Iterator[tuple[str, str]]:
    """Yield the method and collection of each endpoint that updates a resource."""
    for rule, method, _ in iterate_endpoints(create_routes()):
        if method in ("put", "patch") and rule.rule.endswith(">"):
            yield method.upper(), rule.rule.rpartition("/")[0].removeprefix("/v1/")


async def read_resource(caller: Caller, collection: str, key: object) -> Json:
    """Read a resource, from its list if it has no address to read it from."""
    response = await caller.get(f"/v1/{collection}/{key}")
    if response.status == 200:
        return response.json
    (item,) = objects_at((await caller.get(f"/v1/{collection}")).json, "items")
    return item


async def count_audit_entries(runtime: Runtime, caller: Caller) -> int:
    async with runtime.database.write(caller.organization_id) as session:
        rows = select(func.count()).where(col(AuditEntry.organization_id) == caller.organization_id)
        return (await session.exec(rows)).one()


@pytest.mark.parametrize(("method", "collection"), list(list_updates()))
async def test_a_resource_sent_back_as_it_was_read_stays_as_it_is(
    caller: Caller, runtime: Runtime, method: str, collection: str
) -> None:
    resource = RESOURCES[collection]
    key = (await resource.create(caller))["id"]
    read, entries = await read_resource(caller, collection, key), await count_audit_entries(runtime, caller)
    sent_back = await caller.send(method, f"/v1/{collection}/{key}", read)
    assert (sent_back.status, sent_back.json) == (200, read)
    assert await read_resource(caller, collection, key) == read
    assert await count_audit_entries(runtime, caller) == entries

    changed = await caller.send(method, f"/v1/{collection}/{key}", {**read, **resource.change})
    assert changed.status == 200, changed.body
    assert {name for name, value in changed.json.items() if value != read[name]} - {
        "updated_at",
        "version",
        "resolved_at",
    } == set(resource.change)
    assert await count_audit_entries(runtime, caller) == entries + 1, "the entry of the change"


@pytest.mark.parametrize(("method", "collection"), list(list_updates()))
async def test_a_field_that_no_response_has_is_refused(caller: Caller, method: str, collection: str) -> None:
    key = (await RESOURCES[collection].create(caller))["id"]
    response = await caller.send(method, f"/v1/{collection}/{key}", {"id": key, "naem": "typo"})
    assert response.status == 422
    assert [error["field"] for error in objects_at(response.json, "errors")] == ["naem"]


async def test_the_integration_sent_back_stays_as_it_is(caller: Caller, runtime: Runtime) -> None:
    fields = {"partner_api_key": "k", "webhook_url": ADDRESS, "webhook_secret": "s3cret"}
    read = (await caller.send("PUT", "/v1/integrations", fields)).json
    entries = await count_audit_entries(runtime, caller)
    sent_back = await caller.send("PUT", "/v1/integrations", read)
    assert (sent_back.status, sent_back.json) == (200, read)
    assert await count_audit_entries(runtime, caller) == entries


@pytest.mark.parametrize(
    ("fields", "versions"),
    [
        ({}, 1),
        ({"name": "Front desk", "llm_temperature": 1.0}, 1),
        ({"name": "Night desk"}, 2),
        ({"webhook_secret": "s3cret"}, 2),
    ],
)
async def test_an_update_that_changes_nothing_publishes_no_version(caller: Caller, fields: Json, versions: int) -> None:
    agent = await create_agent(caller)
    path = f"/v1/agents/{agent['id']}"
    updated = await caller.send("PUT", path, fields)
    assert (updated.status, updated.json["version"]) == (200, versions)
    assert (await caller.get(f"{path}/versions")).json["total"] == versions


async def test_a_time_zone_that_stays_publishes_no_version(caller: Caller) -> None:
    path = f"/v1/agents/{(await create_agent(caller))['id']}"
    for _ in range(2):
        assert (await caller.send("PUT", path, {"timezone": "Europe/Berlin"})).json["version"] == 2


async def test_a_webhook_address_that_stays_keeps_its_secret(caller: Caller) -> None:
    number = await create_phone_number(caller)
    path = f"/v1/phone-numbers/{number['id']}"
    assert (await caller.send("PUT", path, {"forward_webhook_url": ADDRESS})).json["forward_webhook_secret"] is None
    await caller.send("PUT", path, {"forward_webhook_url": None})
    renewed = await caller.send("PUT", path, {"forward_webhook_url": ADDRESS})
    assert str(renewed.json["forward_webhook_secret"]).startswith("whsec_")
