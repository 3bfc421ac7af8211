"""The pages of webhooks."""

import re
from ipaddress import ip_network

import pytest
from switchboard.foundation.settings import Settings
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller
from tests.fixtures.dashboard import People, Window
from tests.fixtures.json_access import at
from tests.fixtures.receiver import Receiver
from tests.fixtures.webhooks import create_endpoint, list_items, send_test, wait_for_status


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings that allow receivers on this machine and retry soon."""
    networks = [ip_network("127.0.0.0/8")]
    return settings.model_copy(update={"webhook_retry_delays": [0.1], "webhook_allowed_networks": networks})


async def test_an_endpoint_is_added_and_tested_and_the_result_appears(window: Window, receiver: Receiver) -> None:
    receiver.statuses["/hook"] = [500, 200]
    page = window.page
    await window.open("/dashboard/webhooks")
    await page.get_by_role("link", name="Add endpoint").click()
    async with page.expect_console_message(lambda message: "422" in message.text):
        await page.get_by_role("button", name="Add endpoint").click()
    window.complaints.clear()
    await page.get_by_role("alert").get_by_role("link", name="URL").wait_for()
    await page.get_by_label("URL").fill(f"{receiver.url}/hook")
    await page.get_by_label("sms.received").check()
    await window.check_accessibility()
    await page.get_by_role("button", name="Add endpoint").click()
    secret = await page.locator("#secret").text_content()
    assert secret
    assert secret.startswith("whsec_")
    await window.check_accessibility()
    await page.get_by_role("link", name="Done").click()
    await window.check_accessibility()
    await page.get_by_role("button", name="Send test event").click()
    await page.get_by_text("Test event sent.").wait_for()
    await page.get_by_text("delivered", exact=True).wait_for()
    await page.get_by_role("cell", name="500", exact=True).wait_for()
    await window.check_accessibility()
    _, second = await receiver.first("/hook", 2)
    assert second.signed_by(secret)
    assert second.json["event"] == "call.completed"
    assert at(second.json, "data", "metadata") == {"test": True}


async def test_a_refused_address_is_reported_at_its_field_and_selections_are_kept(
    people: People, caller: Caller
) -> None:
    owner = await people.join(caller.organization_id)
    refused = await owner.post(
        "/dashboard/webhooks/new", {"url": "http://10.0.0.1/hook", "events": "", "events[]": ["call.failed"]}
    )
    assert refused.status == 422
    assert 'id="fault-url"' in refused.html
    assert 'value="http://10.0.0.1/hook"' in refused.html
    assert re.search(r'value="call.failed" checked', refused.html)


async def test_an_endpoint_is_changed_disabled_enabled_and_deleted(
    people: People, caller: Caller, receiver: Receiver
) -> None:
    owner = await people.join(caller.organization_id)
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook", events=["call.failed"])
    path = f"/dashboard/webhooks/{endpoint['id']}"
    saved = await owner.post(path, {"url": f"{receiver.url}/other", "description": "Mine", "events": ""})
    assert (saved.status, saved.location) == (303, path)
    updated = (await caller.get(f"/v1/webhook-endpoints/{endpoint['id']}")).json
    assert (updated["url"], updated["description"], updated["events"]) == (f"{receiver.url}/other", "Mine", [])
    await owner.post(f"{path}/enabled", {"enabled": "false"})
    html = (await owner.get(path)).html
    assert "This endpoint is disabled" in html
    assert "Send test event" not in html
    assert (await owner.post(f"{path}/test")).status == 303
    assert "disabled; enable it first" in (await owner.get(path)).html
    await owner.post(f"{path}/enabled", {"enabled": "true"})
    assert "This endpoint is disabled" not in (await owner.get(path)).html
    assert (await owner.post(f"{path}/delete")).location == "/dashboard/webhooks"
    assert "No endpoints yet" in (await owner.get("/dashboard/webhooks")).html


async def test_a_new_secret_is_shown_once(people: People, caller: Caller, receiver: Receiver) -> None:
    owner = await people.join(caller.organization_id)
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    path, seen_secrets = f"/dashboard/webhooks/{endpoint['id']}", {str(endpoint["secret"])}
    ways: list[tuple[dict[str, str | list[str]], str]] = [
        ({"grace": "true"}, "also signs, until"),
        ({}, "no longer signs"),
    ]
    for fields, message in ways:
        html = (await owner.post(f"{path}/rotate", fields)).html
        secret = re.search(r"whsec_[\w-]+", html)
        assert secret
        assert secret[0] not in seen_secrets
        assert message in html
        assert secret[0] not in (await owner.get(path)).html
        seen_secrets.add(secret[0])


async def test_deliveries_are_filtered_and_replayed(
    people: People, caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    receiver.statuses["/bad"] = [410]
    owner = await people.join(caller.organization_id)
    good, bad = (
        await create_endpoint(caller, f"{receiver.url}/good"),
        await create_endpoint(caller, f"{receiver.url}/bad"),
    )
    delivered = await wait_for_status(caller, await send_test(caller, good), status="delivered")
    failed = await wait_for_status(caller, await send_test(caller, bad), status="failed")
    for query, present, absent in (
        ("status=failed", failed, delivered),
        ("status=delivered", delivered, failed),
        (f"endpoint_id={good['id']}", delivered, failed),
    ):
        html = (await owner.get(f"/dashboard/webhooks/deliveries?{query}")).html
        assert str(present["id"]) in html
        assert str(absent["id"]) not in html
    assert "No matching deliveries" in (await owner.get("/dashboard/webhooks/deliveries?target_kind=agent")).html
    again = await owner.post(f"/dashboard/webhooks/deliveries/{failed['id']}/replay")
    assert again.status == 303
    assert "the original delivery" in (await owner.get(again.location)).html
    await receiver.first("/bad", 2)


async def test_failed_deliveries_of_a_period_are_replayed(
    people: People, caller: Caller, receiver: Receiver, running_worker: None
) -> None:
    member = await people.join(caller.organization_id, role="builder")
    receiver.statuses["/hook"] = [410, 410, 200]
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    for _ in range(2):
        await wait_for_status(caller, await send_test(caller, endpoint), status="failed")
    path = f"/dashboard/webhooks/{endpoint['id']}"
    assert "Replay failed deliveries" in (await member.get(path)).html
    for notice in ("2 failed deliveries replayed.", "No failed deliveries to replay."):
        replayed = await member.post(f"{path}/replay-failed", {"hours": "24"})
        assert (replayed.status, replayed.location) == (303, path)
        assert notice in (await member.get(path)).html
    await receiver.first("/hook", 4)
    await caller.send("PATCH", f"/v1/webhook-endpoints/{endpoint['id']}", {"enabled": False})
    assert "Replay failed deliveries" not in (await member.get(path)).html


async def test_members_can_view_and_test_but_not_change_webhooks(
    people: People, caller: Caller, receiver: Receiver
) -> None:
    member = await people.join(caller.organization_id, role="builder")
    endpoint = await create_endpoint(caller, f"{receiver.url}/hook")
    path = f"/dashboard/webhooks/{endpoint['id']}"
    html = (await member.get(path)).html
    assert "Send test event" in html
    assert "Delete" not in html
    for way in ("", "/enabled", "/rotate", "/delete"):
        assert (await member.post(path + way)).status == 403, way
    assert (await member.get("/dashboard/webhooks/new")).status == 403
    assert (await member.post(f"{path}/test")).status == 303


async def test_other_organizations_webhooks_are_unreachable(
    people: People, caller: Caller, stranger: Caller, receiver: Receiver, runtime: Runtime
) -> None:
    endpoint = await create_endpoint(stranger, f"{receiver.url}/theirs")
    delivery = await send_test(stranger, endpoint)
    owner = await people.join(caller.organization_id)
    assert "/theirs" not in (await owner.get("/dashboard/webhooks")).html
    assert (
        "call.completed" not in (await owner.get(f"/dashboard/webhooks/deliveries?endpoint_id={endpoint['id']}")).html
    )
    for endpoint_id in (endpoint["id"], UNKNOWN_ID):
        path = f"/dashboard/webhooks/{endpoint_id}"
        assert (await owner.get(path)).status == 404
        for way in ("", "/enabled", "/rotate", "/test", "/delete"):
            assert (await owner.post(path + way, {"url": "https://example.com"} if way == "" else {})).status == 404, (
                way
            )
    for delivery_id in (delivery["id"], UNKNOWN_ID):
        path = f"/dashboard/webhooks/deliveries/{delivery_id}"
        assert (await owner.get(path)).status == (await owner.get(f"{path}/live")).status == 404
        assert (await owner.post(f"{path}/replay")).status == 404
    assert len(list_items(await stranger.get("/v1/webhook-deliveries"))) == 1


async def test_the_integration_is_configured_and_its_secrets_are_never_shown(
    window: Window, receiver: Receiver
) -> None:
    page = window.page
    await window.open("/dashboard/webhooks")
    await page.get_by_role("link", name="Integration").click()
    await page.get_by_label("URL").fill(f"{receiver.url}/partner")
    await page.get_by_label("Signing secret").fill("shown to nobody")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Saved.").wait_for()
    assert await page.get_by_label("URL").input_value() == f"{receiver.url}/partner"
    assert "shown to nobody" not in await page.content()
    await window.check_accessibility()
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("Leave empty to keep the current value").wait_for()
    await window.press("Delete the signing secret")
    await page.get_by_text("Secret deleted.").wait_for()
    assert await page.get_by_text("Leave empty to keep the current value").count() == 0


async def test_integration_errors_appear_at_their_fields(people: People, caller: Caller) -> None:
    owner, path = await people.join(caller.organization_id), "/dashboard/webhooks/integration"
    refused = await owner.post(path, {"webhook_url": "http://10.0.0.1/", "webhook_secret": "", "partner_api_key": "x"})
    assert (refused.status, 'id="fault-webhook_url"' in refused.html, 'value="http://10.0.0.1/"' in refused.html) == (
        422,
        True,
        True,
    )
    assert (await owner.post(f"{path}/forget", {"secret": "webhook_url"})).status == 303
    assert "secret: must be" in (await owner.get(path)).html
    member = await people.join(caller.organization_id, role="builder")
    assert (await member.get(path)).status == 403
    assert "Integration" not in (await member.get("/dashboard/webhooks")).html
