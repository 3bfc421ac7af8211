"""Tokens for calling from a browser, and the numbers to call from."""

import pytest
from switchboard.phone_numbers import purchase
from switchboard.phone_numbers.schemas import PhoneNumberBuy
from switchboard.plugins.registry import Capability
from switchboard.providers.configuration import Wanted, configure
from switchboard.runtime import Runtime
from switchboard.tenants.defaults import embedded_providers

from tests.fixtures.app import Caller, Organizations, fresh_number

TWILIO = {
    "account_sid": "AC" + "a" * 32, "auth_token": "secret", "api_sid": "SK" + "b" * 32, "api_secret": "c" * 32, "application_sid": "AP" + "d" * 32,
}  # fmt: skip


async def with_twilio(runtime: Runtime, caller: Caller) -> None:
    """Twilio is the second carrier, so numbers are still bought from the loopback one."""
    loopback, *others = embedded_providers(runtime.registry)
    async with runtime.database.tenant(caller.organization_id) as session:
        await configure(session, runtime.registry, runtime.keyring, [loopback, Wanted(Capability.TELEPHONY, "twilio", TWILIO), *others])


@pytest.mark.parametrize("platform", ["web", "ios", "android"])
async def test_a_token_is_minted(runtime: Runtime, caller: Caller, platform: str) -> None:
    await with_twilio(runtime, caller)
    answer = await caller.post(f"/v1/browser-call/token?platform={platform}")
    assert answer.status == 200, answer.body
    assert (answer.json["provider"], answer.json["platform"]) == ("twilio", platform)
    assert answer.json["identity"] == f"credential_{caller.key_id.hex}"
    assert str(answer.json["token"]).count(".") == 2
    assert "expires_at" in answer.json
    assert b"c" * 32 not in answer.body


async def test_the_platform_is_web_unless_it_is_named(runtime: Runtime, caller: Caller) -> None:
    await with_twilio(runtime, caller)
    assert (await caller.post("/v1/browser-call/token")).json["platform"] == "web"
    for query in ("platform=fridge", "platform=", "nonsense=1"):
        assert (await caller.post(f"/v1/browser-call/token?{query}")).status == 422, query


async def test_without_a_carrier_for_it_there_is_no_browser_calling(caller: Caller) -> None:
    answer = await caller.post("/v1/browser-call/token")
    assert (answer.status, answer.json["code"]) == (409, "invalid_state")
    assert (await caller.get("/v1/browser-call/phone-numbers")).json == {"items": []}


async def test_the_caller_ids_are_the_carriers_numbers(runtime: Runtime, caller: Caller, stranger: Caller) -> None:
    number = await purchase.buy(runtime, caller.organization_id, PhoneNumberBuy(phone_number=fresh_number(), friendly_name="Front desk"))
    await with_twilio(runtime, caller)
    await with_twilio(runtime, stranger)
    assert (await caller.get("/v1/browser-call/phone-numbers")).json == {"items": []}, "it is another carrier's"
    async with runtime.database.tenant(caller.organization_id) as session:
        (await session.merge(number)).carrier = "twilio"
    items = [{"id": str(number.id), "phone_number": number.phone_number, "friendly_name": "Front desk"}]
    assert (await caller.get("/v1/browser-call/phone-numbers")).json == {"items": items}
    assert (await stranger.get("/v1/browser-call/phone-numbers")).json == {"items": []}


async def test_scopes(organizations: Organizations) -> None:
    reader = await organizations.make(scopes=["phone-numbers:read"])
    assert (await reader.post("/v1/browser-call/token")).status == 403
    assert (await reader.get("/v1/browser-call/phone-numbers")).status == 200
