"""The integration through the API. Deliveries to its webhook are in test_webhook_deliveries.py."""

import pytest
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.json_access import at


async def test_given_fields_change_and_secrets_are_never_returned(caller: Caller, runtime: Runtime) -> None:
    body = {"partner_api_key": "partner key", "webhook_url": "https://example.com/partner", "webhook_secret": "s3cret"}
    first = await caller.send("PUT", "/v1/integrations", body)
    assert first.status == 200
    updated_at = first.json.pop("updated_at")
    assert updated_at
    assert first.json == {
        "has_partner_api_key": True,
        "webhook_url": "https://example.com/partner",
        "has_webhook_secret": True,
    }
    second = await caller.send("PUT", "/v1/integrations", {"webhook_secret": None})
    assert {**second.json, "updated_at": None} == {
        "has_partner_api_key": True,
        "webhook_url": "https://example.com/partner",
        "has_webhook_secret": False,
        "updated_at": None,
    }
    third = await caller.send("PUT", "/v1/integrations", {"partner_api_key": None, "webhook_url": None})
    assert (third.json["has_partner_api_key"], third.json["webhook_url"]) == (False, None)
    async with runtime.database.write(caller.organization_id) as session:
        actions = (await (await session.connection()).exec_driver_sql("select action from audit_entry")).scalars().all()
    assert actions.count("integration.updated") == 3


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("webhook_url", "http://127.0.0.1/"),
        ("webhook_url", 1),
        ("webhook_url", ""),
        ("webhook_secret", ""),
        ("partner_api_key", 5),
        ("partner_api_key", "x" * 256),
        ("webhook_ulr", "https://example.com/"),
    ],
)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    response = await caller.send("PUT", "/v1/integrations", {field: value})
    assert response.status == 422
    assert at(response.json, "errors", 0, "field") == field


async def test_updates_require_the_webhooks_write_scope(organizations: Organizations) -> None:
    reader = await organizations.create(scopes=["webhooks:read"])
    assert (await reader.send("PUT", "/v1/integrations", {})).status == 403
