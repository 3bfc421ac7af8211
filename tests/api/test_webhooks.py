"""Webhook endpoints through the API."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from switchboard.foundation.database import now
from switchboard.foundation.events.models import EventTarget
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.json_access import text_at
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import create_endpoint, get_endpoint, list_items, parse_time, send_test, wait_for_status

pytestmark = pytest.mark.local_receivers
EVENTS = [
    "call.started",
    "call.ringing",
    "call.completed",
    "call.failed",
    "call.takeover",
    "call.transcript.ready",
    "sms.received",
    "sms.sent",
    "simulation.completed",
    "call.handed_off",
    "appointment.booked",
    "appointment.moved",
    "appointment.canceled",
    "appointment.reminder",
    "calendar.disconnected",
]
"""The nine of the specification, and additions."""
DELAYS = [0.1, 0.2, 0.3, 0.4, 0.5]
BAD_FIELDS = [
    ("url", "http://127.0.0.1/"),
    ("url", "http://10.0.0.1/"),
    ("url", "http://169.254.169.254/"),
    ("url", "http://localhost/"),
    ("url", "no url"),
    ("url", "ftp://example.com/"),
    ("url", ""),
    ("url", 1),
    ("url", None),
    ("url", "https://example.com/" + "x" * 2048),
    ("events", ["call.unknown"]),
    ("events", "call.completed"),
    ("events", [1]),
    ("description", 1),
    ("description", "x" * 1001),
    ("description", "a\0b"),
    ("evnets", []),
]


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings with a shortened retry schedule."""
    return settings.model_copy(update={"webhook_retry_delays": DELAYS, "webhook_timeout": 1.0})


async def test_webhook_endpoint_life_cycle(caller: Caller) -> None:
    created = await create_endpoint(
        caller, "https://example.com/hooks#part", description="Ours", events=["call.completed", "call.completed"]
    )
    assert str(created.pop("secret")).startswith("whsec_")
    assert UUID(str(created["id"]))
    assert {
        name: created[name]
        for name in ("url", "description", "events", "enabled", "has_secret", "consecutive_failures")
    } == {
        "url": "https://example.com/hooks",
        "description": "Ours",
        "events": ["call.completed"],
        "enabled": True,
        "has_secret": True,
        "consecutive_failures": 0,
    }
    assert created["previous_secret_expires_at"] is None
    path = f"/v1/webhook-endpoints/{created['id']}"
    assert (await caller.get(path)).json == created
    assert list_items(await caller.get("/v1/webhook-endpoints")) == [created]
    changed = await caller.send(
        "PATCH", path, {"url": "https://example.com/else", "description": None, "events": [], "enabled": False}
    )
    assert changed.status == 200
    expected = {**created, "url": "https://example.com/else", "description": None, "events": [], "enabled": False}
    assert changed.json == {**expected, "updated_at": changed.json["updated_at"]}
    deleted = await caller.send("DELETE", path)
    assert (deleted.status, deleted.body) == (204, b"")
    assert (await caller.get(path)).status == 404
    assert list_items(await caller.get("/v1/webhook-endpoints")) == []


@pytest.mark.parametrize("events", [None, [], "omitted"])
async def test_an_endpoint_without_events_receives_every_event(caller: Caller, events: object) -> None:
    fields = {} if events == "omitted" else {"events": events}
    assert (await create_endpoint(caller, "https://example.com/", **fields))["events"] == []


@pytest.mark.public_only
@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    endpoint = await create_endpoint(caller, "https://example.com/")
    for response in (
        await caller.post("/v1/webhook-endpoints", {"url": "https://example.com/", field: value}),
        await caller.send("PATCH", f"/v1/webhook-endpoints/{endpoint['id']}", {field: value}),
    ):
        assert response.status == 422
        assert text_at(response.json, "errors", 0, "field").startswith(field)
    endpoint.pop("secret")
    assert list_items(await caller.get("/v1/webhook-endpoints")) == [endpoint]


async def test_the_platform_cannot_be_a_receiver(caller: Caller, runtime: Runtime) -> None:
    platform_url = await caller.post("/v1/webhook-endpoints", {"url": f"{runtime.settings.base_url}/v1/sms"})
    assert platform_url.status == 422


async def test_concurrent_requests_cannot_create_more_than_ten_endpoints(caller: Caller) -> None:
    created = await asyncio.gather(
        *(caller.post("/v1/webhook-endpoints", {"url": f"https://example.com/{n}"}) for n in range(14))
    )
    assert sorted(response.status for response in created) == [201] * 10 + [409] * 4
    assert next(response.json["code"] for response in created if response.status == 409) == "invalid_state"
    first = list_items(await caller.get("/v1/webhook-endpoints"))[0]
    await caller.send("DELETE", f"/v1/webhook-endpoints/{first['id']}")
    await create_endpoint(caller, "https://example.com/again")


async def test_all_events_are_listed(caller: Caller) -> None:
    response = await caller.get("/v1/webhook-events")
    assert sorted(str(item["name"]) for item in list_items(response)) == sorted(EVENTS)
    assert all(item["description"] for item in list_items(response))


async def test_a_secret_is_shown_once_and_stored_encrypted(caller: Caller, runtime: Runtime) -> None:
    body = b'{"url": "https://example.com/"}'
    first = await caller.send("POST", "/v1/webhook-endpoints", data=body, Idempotency_Key="k")
    again = await caller.send("POST", "/v1/webhook-endpoints", data=body, Idempotency_Key="k")
    secret = str(first.json["secret"])
    assert again.body == first.body
    assert "secret" not in (await get_endpoint(caller, first.json))
    async with runtime.database.system() as session:
        connection = await session.connection()
        targets = (await connection.exec_driver_sql("select event_target::text from event_target")).scalars().all()
        entries = (await connection.exec_driver_sql("select audit_entry::text from audit_entry")).scalars().all()
    assert not any(secret in str(row) for row in (*targets, *entries))
    async with runtime.database.write(caller.organization_id) as session:
        stored = (
            (await (await session.connection()).exec_driver_sql("select body from idempotency_record")).scalars().all()
        )
    assert stored
    assert not any(secret.encode() in row for row in stored)


async def test_both_secrets_sign_during_the_grace_period(
    caller: Caller, receiver: Receiver, running_worker: None, runtime: Runtime
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    path = f"/v1/webhook-endpoints/{endpoint['id']}/rotate-secret"
    first = await caller.post(path)
    assert first.status == 200
    assert set(first.json) == {"secret", "previous_secret_expires_at"}
    expires = parse_time(first.json["previous_secret_expires_at"])
    assert abs(expires - now() - timedelta(hours=24)) < timedelta(minutes=1)
    assert parse_time((await get_endpoint(caller, endpoint))["previous_secret_expires_at"]) == expires
    old, new = str(endpoint["secret"]), str(first.json["secret"])

    async def signed_by(*secrets: str) -> bool:
        await wait_for_status(caller, await send_test(caller, endpoint), status="delivered")
        return receiver.received[-1].signed_by(*secrets)

    assert await signed_by(new, old)
    newest = str((await caller.post(f"{path}?grace=true")).json["secret"])
    assert await signed_by(newest, new)
    async with runtime.database.write(caller.organization_id) as session:
        target = await session.get_one(EventTarget, UUID(str(endpoint["id"])))
        target.previous_secret_expires_at = now() - timedelta(seconds=1)
    assert await signed_by(newest)
    last = await caller.post(f"{path}?grace=false")
    assert last.json["previous_secret_expires_at"] is None
    assert await signed_by(str(last.json["secret"]))
    assert (await caller.post(f"{path}?grace=maybe")).status == 422


async def test_endpoints_and_deliveries_of_other_organizations_are_not_found(
    caller: Caller, stranger: Caller, receiver: Receiver, running_worker: None
) -> None:
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    delivery = await wait_for_status(caller, await send_test(caller, endpoint), status="delivered")
    for method, path in [
        ("GET", "webhook-endpoints/{endpoint}"),
        ("PATCH", "webhook-endpoints/{endpoint}"),
        ("DELETE", "webhook-endpoints/{endpoint}"),
        ("GET", "webhook-endpoints/{endpoint}/deliveries"),
        ("POST", "webhook-endpoints/{endpoint}/rotate-secret"),
        ("POST", "webhook-endpoints/{endpoint}/test"),
        ("GET", "webhook-deliveries/{delivery}"),
        ("GET", "webhook-deliveries/{delivery}/attempts"),
        ("POST", "webhook-deliveries/{delivery}/replay"),
    ]:
        body: object = {} if method == "PATCH" else None
        foreign = await stranger.send(
            method, "/v1/" + path.format(endpoint=endpoint["id"], delivery=delivery["id"]), body
        )
        unknown = await stranger.send(method, "/v1/" + path.format(endpoint=uuid4(), delivery=uuid4()), body)
        assert (
            (foreign.status, foreign.json["detail"])
            == (unknown.status, unknown.json["detail"])
            == (404, unknown.json["detail"])
        )
    assert list_items(await stranger.get("/v1/webhook-endpoints")) == []
    assert list_items(await stranger.get("/v1/webhook-deliveries")) == []
    endpoint.pop("secret")
    assert await get_endpoint(caller, endpoint) == endpoint


async def test_reading_and_writing_require_their_scopes(organizations: Organizations) -> None:
    reader = await organizations.create(scopes=["webhooks:read"])
    writer = await organizations.create_key(reader.organization_id, scopes=["webhooks:write"])
    assert (await reader.get("/v1/webhook-endpoints")).status == 200
    assert (await writer.get("/v1/webhook-endpoints")).status == 403
    for path in (
        "webhook-endpoints",
        f"webhook-endpoints/{uuid4()}/rotate-secret",
        f"webhook-deliveries/{uuid4()}/replay",
    ):
        assert (
            await reader.post(f"/v1/{path}", {"url": "https://example.com/"} if path == "webhook-endpoints" else None)
        ).status == 403
