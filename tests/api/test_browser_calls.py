"""Calling from a browser: tokens, the numbers to call from, and whole calls over the loopback carrier's socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import numpy as np
import pytest
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.web.errors import InvalidState
from switchboard.plugin_sdk import CallbackUrls, NumberOrder, ProviderError, TelephonyProvider
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.browser_calls.service import BrowserTokenMint
from switchboard.resources.phone_numbers import purchases
from switchboard.resources.phone_numbers.schemas import PhoneNumberBuy
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, LivePlatform, Organizations, fresh_number
from tests.fixtures.json_access import Json
from tests.fixtures.monitors import synthesize_samples

TWILIO = {
    "account_sid": "AC" + "a" * 32,
    "auth_token": "secret",
    "api_sid": "SK" + "b" * 32,
    "api_secret": "c" * 32,
    "application_sid": "AP" + "d" * 32,
}


async def prefer_twilio(runtime: Runtime, caller: Caller) -> None:
    """Put Twilio before the loopback carrier."""
    providers = [ProviderSpec(Capability.TELEPHONY, "twilio", TWILIO), *list_embedded_providers(runtime.registry)]
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, providers)


@pytest.mark.parametrize("platform", ["web", "ios", "android"])
async def test_a_token_is_created(runtime: Runtime, caller: Caller, platform: str) -> None:
    await prefer_twilio(runtime, caller)
    response = await caller.post(f"/v1/browser-call/token?platform={platform}")
    assert response.status == 200, response.body
    assert (response.json["provider"], response.json["platform"]) == ("twilio", platform)
    assert response.json["identity"] == f"credential_{caller.key_id.hex}"
    assert str(response.json["token"]).count(".") == 2
    assert "expires_at" in response.json
    assert b"c" * 32 not in response.body


async def test_the_platform_defaults_to_web(runtime: Runtime, caller: Caller) -> None:
    await prefer_twilio(runtime, caller)
    assert (await caller.post("/v1/browser-call/token")).json["platform"] == "web"
    for query in ("platform=fridge", "platform=", "nonsense=1"):
        assert (await caller.post(f"/v1/browser-call/token?{query}")).status == 422, query


async def test_browser_calls_need_a_carrier_that_supports_them(runtime: Runtime, caller: Caller) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(
            session, runtime.registry, runtime.keyring, [ProviderSpec(Capability.LLM, "scripted", {})]
        )
    response = await caller.post("/v1/browser-call/token")
    assert (response.status, response.json["code"]) == (409, "invalid_state")
    assert (await caller.get("/v1/browser-call/phone-numbers")).json == {"items": []}


async def test_caller_ids_are_the_carriers_numbers(runtime: Runtime, caller: Caller, stranger: Caller) -> None:
    buyer = runtime.call(purchases.NumberBuyer)
    number = await buyer.buy_number(
        caller.organization_id, PhoneNumberBuy(phone_number=fresh_number(), friendly_name="Front desk")
    )
    await prefer_twilio(runtime, caller)
    await prefer_twilio(runtime, stranger)
    assert (await caller.get("/v1/browser-call/phone-numbers")).json == {"items": []}, "it is another carrier's"
    async with runtime.database.write(caller.organization_id) as session:
        (await session.merge(number)).carrier = "twilio"
    items = [{"id": str(number.id), "phone_number": number.phone_number, "friendly_name": "Front desk"}]
    assert (await caller.get("/v1/browser-call/phone-numbers")).json == {"items": items}
    assert (await stranger.get("/v1/browser-call/phone-numbers")).json == {"items": []}


async def test_agent_calls_use_the_platform_socket_unless_the_page_has_the_first_carriers_sdk(
    runtime: Runtime, caller: Caller
) -> None:
    twilio, loopback = (
        ProviderSpec(Capability.TELEPHONY, "twilio", TWILIO),
        ProviderSpec(Capability.TELEPHONY, "loopback", {"browsers_only": True}),
    )
    mint = runtime.call(BrowserTokenMint)
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, [twilio, loopback])
    async with runtime.database.write(caller.organization_id) as session:
        assert await mint.find_talk_carrier(session, ()) == "loopback"
        assert await mint.find_talk_carrier(session, ("telnyx",)) == "loopback"
        assert await mint.find_talk_carrier(session, ("telnyx", "twilio")) == "twilio"
    async with runtime.providers.use(caller.organization_id, TelephonyProvider, "loopback") as carrier:
        with pytest.raises(ProviderError, match="browsers only"):
            await carrier.buy_number(NumberOrder("+12125550103", CallbackUrls("https://voice.example/")))
    async with runtime.database.write(caller.organization_id) as session:
        await configure_providers(session, runtime.registry, runtime.keyring, [twilio])
        with pytest.raises(InvalidState, match="loopback carrier"):
            await mint.find_talk_carrier(session, ())


async def test_endpoints_require_their_scopes(organizations: Organizations) -> None:
    reader = await organizations.create(scopes=["phone-numbers:read"])
    assert (await reader.post("/v1/browser-call/token")).status == 403
    assert (await reader.get("/v1/browser-call/phone-numbers")).status == 200


@dataclass(slots=True)
class Browser:
    """A page that calls: the messages and the audio that it received."""

    socket: aiohttp.ClientWebSocketResponse
    received: list[Json] = field(default_factory=list)
    received_audio: bytearray = field(default_factory=bytearray)

    async def until(self, *, event: str = "", voiced: bool = False, silent: bool = False) -> None:
        """Listen, while sending silence like a microphone, for a message, for sound, or for half a second without
        sound.
        """
        del self.received_audio[:]
        async with asyncio.timeout(60):
            while not (event and self.received and self.received[-1]["event"] == event):
                message = await self.socket.receive()
                if message.type is aiohttp.WSMsgType.TEXT:
                    self.received.append(json.loads(message.data))
                    continue
                assert message.type is aiohttp.WSMsgType.BINARY, message
                self.received_audio += message.data
                await self.socket.send_bytes(bytes(320))
                if voiced and self.peak(0.02) > 1000:
                    return
                if silent and len(self.received_audio) > 8000 and self.peak(0.5) < 300:
                    return

    def peak(self, seconds: float) -> int:
        return int(
            np.abs(
                np.frombuffer(bytes(self.received_audio[-int(seconds * 16_000) :]), dtype="<i2").astype(np.int32)
            ).max(initial=0)
        )

    async def say(self, text: str) -> None:
        samples, clock = synthesize_samples(text).tobytes(), asyncio.get_running_loop().time
        due = clock()
        for at in range(0, len(samples), 640):
            await self.socket.send_bytes(samples[at : at + 640])
            due += 0.04
            await asyncio.sleep(max(0.0, due - clock()))


@asynccontextmanager
async def browser(live: LivePlatform, to_number: str, **fields: str) -> AsyncIterator[Browser]:
    token = (await live.caller.post("/v1/browser-call/token")).json
    assert token["provider"] == "loopback"
    connection = token["connection"]
    assert isinstance(connection, dict)
    assert connection["sdk"] == "switchboard-loopback"
    async with aiohttp.ClientSession() as http, http.ws_connect(str(connection["url"])) as socket:
        await socket.send_str(json.dumps({"event": "dial", "token": token["token"], "to_number": to_number, **fields}))
        yield Browser(socket)


async def get_only_call(live: LivePlatform) -> Json:
    items = (await live.caller.get("/v1/calls")).json["items"]
    assert isinstance(items, list)
    assert isinstance(items[0], dict)
    return await live.wait_for_end(items[0]["id"])


async def test_a_browser_talks_to_an_agent_over_the_loopback_carrier(live: LivePlatform) -> None:
    async with browser(live, live.number) as page:
        await page.until(event="connected")
        await page.until(voiced=True)
        await page.until(silent=True)
        await page.say("What are your opening hours?")
        await page.until(voiced=True)
        await page.until(silent=True)
        await page.socket.send_str('{"event":"digit","digit":"7"}')
        await page.socket.send_str('{"event":"digit","digit":"#"}')
        await page.until(voiced=True)
        await page.socket.send_str('{"event":"hang_up"}')
        await page.until(event="ended")
        assert page.received[-1]["message"] is None
    call = await get_only_call(live)
    assert (call["direction"], call["from_number"], call["to_number"]) == ("inbound", live.number, live.number)
    assert call["ended_reason"] == "caller_hung_up"
    lines = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"]
    assert isinstance(lines, list)
    spoken = [str(line["content"]) for line in lines if isinstance(line, dict)]
    assert "We are open from seven to six every day of the week." in spoken
    assert "DTMF: 7" in spoken


async def test_a_browser_dials_any_number_from_an_organization_number(live: LivePlatform) -> None:
    async with browser(live, "+15550100001", from_number=live.number) as page:
        await page.until(event="connected")
        await page.until(voiced=True)
    call = await get_only_call(live)
    assert (call["direction"], call["from_number"], call["to_number"]) == ("outbound", live.number, "+15550100001")
    for to_number, from_number in (("+15550100001", ""), ("+15550100020", live.number), ("nobody", live.number)):
        async with browser(live, to_number, from_number=from_number) as page:
            await page.until(event="ended")
            assert page.received[-1]["message"]


async def test_an_agent_without_a_number_can_be_called_and_hangs_up(live: LivePlatform) -> None:
    assert (
        await live.caller.send("PUT", f"/v1/phone-numbers/{live.number_id}", {"inbound_agent_id": None})
    ).status == 200
    async with browser(live, f"agent:{live.agent_id}") as page:
        await page.until(voiced=True)
        await page.until(silent=True)
        await page.say("Goodbye.")
        await page.until(event="ended")
        assert (await page.socket.receive()).type is aiohttp.WSMsgType.CLOSE
    call = await get_only_call(live)
    assert (call["ended_reason"], call["agent_id"], call["from_number"], call["to_number"]) == (
        "agent_hung_up",
        live.agent_id,
        "browser",
        "browser",
    )
    for unknown_agent in (f"agent:{UNKNOWN_ID}", "agent:x"):
        async with browser(live, unknown_agent) as page:
            await page.until(event="ended")
            assert page.received[-1]["message"] == "rejected"


async def test_a_call_without_a_valid_token_is_refused(live: LivePlatform, stranger: Caller) -> None:
    token = (await live.caller.post("/v1/browser-call/token")).json
    foreign = (await stranger.post("/v1/browser-call/token")).json
    assert isinstance(token["connection"], dict)
    url = str(token["connection"]["url"])
    good = str(token["token"])
    for bad in (
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        "1" + good,
        str(foreign["token"]),
        "",
        "1.x.y",
        f"0.{good.partition('.')[2]}",
    ):
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as socket:
            await socket.send_str(json.dumps({"event": "dial", "token": bad, "to_number": live.number}))
            assert "valid token" in json.loads(await socket.receive_str())["message"]
    for other in (url.replace("loopback", "nobody"), url[:-1] + ("0" if url[-1] != "0" else "1"), url[:-5]):
        async with aiohttp.ClientSession() as http:
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await http.ws_connect(other)
    assert (await live.caller.get("/v1/calls")).json["total"] == 0
