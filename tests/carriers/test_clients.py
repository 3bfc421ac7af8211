"""Calls that ring clients over the vendors' carriers: a forward, a transfer, and a warm transfer, with real audio."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from switchboard.plugin_sdk import SimulatedCall
from switchboard.runtime import Runtime
from switchboard_offline.loopback.persons import Directory, Subscriber

from tests.api.test_browser_calls import TWILIO
from tests.carriers.lines import PERSON, Line, open_telnyx_line, open_twilio_line
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.test_scenarios import CLOSED, CONNECTS, INTRODUCTION, OTHERS, buy_number, wait_for_call_from
from tests.carriers.twilio.server import TwilioServer
from tests.fixtures.app import Organizations

CLIENT = "client:reception"


class CalledNumbers(Directory):
    """Finds people, and remembers for whom it was asked."""

    def __init__(self) -> None:
        super().__init__({})
        self.called: list[str] = []

    def subscriber(self, number: str) -> Subscriber:
        self.called.append(number)
        return super().subscriber(number)


@dataclass(frozen=True, slots=True)
class ClientLine:
    """A carrier's line, and the destinations that were called over it."""

    line: Line
    vendor: TwilioServer | TelnyxServer
    destinations: CalledNumbers

    async def register(self) -> str:
        """Create the client's token, and return its address at the carrier."""
        response = await self.line.live.caller.post("/v1/browser-call/token?identity=reception")
        assert response.status == 200, response.body
        identity = f"client_{self.line.live.caller.organization_id.hex}_reception"
        assert (response.json["provider"], response.json["identity"]) == (self.line.carrier, identity)
        if not isinstance(self.vendor, TelnyxServer):
            return f"client:{identity}"
        (credential,) = self.vendor.credentials.values()
        assert credential["name"] == identity
        return f"sip:{credential['sip_username']}@sip.telnyx.com"

    async def call(self, caller: str, number: str) -> tuple[SimulatedCall, dict[str, Any]]:
        """Call a number; return the caller's side, and the call in the end."""
        simulated = await self.line.people.simulate_call(caller, number, ["Thank you", "I would like to order bread"])
        return simulated, await wait_for_call_from(self.line.live, caller)

    async def create_operator(self, area_code: str, target: str) -> str:
        """Return a number whose agent transfers callers to the target."""
        prompt = CONNECTS.replace(PERSON, target)
        operator = {"name": "Operator", "system_prompt": prompt, "greeting_message": "Whom do you want to speak to?"}
        agent = (await self.line.live.caller.post("/v1/agents", operator)).json["id"]
        return await buy_number(self.line, area_code, inbound_agent_id=agent)


@pytest_asyncio.fixture(params=["twilio", "telnyx"])
async def at_vendor(
    request: pytest.FixtureRequest, runtime: Runtime, organizations: Organizations
) -> AsyncIterator[ClientLine]:
    destinations = CalledNumbers()
    if request.param == "twilio":
        browsers = {name: TWILIO[name] for name in ("api_sid", "api_secret", "application_sid")}
        async with open_twilio_line(runtime, organizations, **browsers) as (line, twilio):
            twilio.directory = destinations
            yield ClientLine(line, twilio, destinations)
    else:
        async with open_telnyx_line(runtime, organizations) as (line, telnyx):
            telnyx.directory = destinations
            yield ClientLine(line, telnyx, destinations)


async def test_forwards_and_transfers_ring_a_client(at_vendor: ClientLine) -> None:
    address = await at_vendor.register()
    forwards = await buy_number(at_vendor.line, "312", schedule=CLOSED, forward_number=CLIENT)
    transfers = await at_vendor.create_operator("212", CLIENT)
    introduces = await at_vendor.create_operator("213", f'{CLIENT}", introduction="{INTRODUCTION}')
    results = await asyncio.gather(
        *(at_vendor.call(*call) for call in zip(OTHERS, (forwards, transfers, introduces), strict=False))
    )
    for simulated, call in results:
        assert simulated.answered
        assert simulated.heard_seconds > 1
        assert (call["status"], call["ended_reason"], call["transferred_to"]) == ("completed", "transferred", CLIENT)
    assert set(at_vendor.destinations.called) == {address}
    assert at_vendor.vendor.introductions == [f"{INTRODUCTION} Press one to accept the call."]
