"""A platform whose organization has a carrier, and people who call and text over it.

To add a carrier, write a wire server that plays the loopback carrier's people (`tests/carriers/twilio`), a `…_line`
here, and a parameter of the scenarios' fixture.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue
from sqlmodel import col, select
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import SimulatedCall, SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.phone_numbers import purchases
from switchboard.runtime import Runtime

from tests.carriers.telnyx.rest import listening as listening_telnyx
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.twilio.rest import listening as listening_twilio
from tests.carriers.twilio.server import TwilioServer
from tests.fixtures.app import LivePlatform, Organizations, bakery, fresh_number, listening
from tests.fixtures.json_access import Json

PERSON = "+15550100001"


class People(Protocol):
    """The telephones of other people."""

    async def ring(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
        """Call one of the organization's numbers and say these lines."""

    async def text(self, from_number: str, to_number: str, body: str) -> str:
        """Send a text message to one of the organization's numbers and return the carrier's id for it."""


@dataclass(frozen=True, slots=True)
class LoopbackPeople:
    """The people of the loopback carrier."""

    runtime: Runtime
    live: LivePlatform

    async def ring(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
        organization_id = self.live.caller.organization_id
        async with self.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
            assert isinstance(carrier, SimulatedCarrier)
            return await carrier.simulate_call(
                from_number=from_number,
                to_number=to_number,
                lines=[SpokenLine(text=line) for line in lines],
                callbacks=purchases.build_callback_urls(self.runtime.settings.base_url, organization_id, "loopback"),
            )

    async def text(self, from_number: str, to_number: str, body: str) -> str:
        organization_id = self.live.caller.organization_id
        async with self.runtime.providers.use(organization_id, TelephonyProvider) as carrier:
            assert isinstance(carrier, SimulatedCarrier)
            callbacks = purchases.build_callback_urls(self.runtime.settings.base_url, organization_id, "loopback")
            return await carrier.simulate_text_message(
                from_number=from_number, to_number=to_number, body=body, callbacks=callbacks
            )


@dataclass(frozen=True, slots=True)
class Line:
    """A carrier in use."""

    carrier: str
    live: LivePlatform
    people: People

    async def ring(self, *lines: str) -> SimulatedCall:
        """Call the bakery and say these lines."""
        return await self.people.ring(PERSON, self.live.number, lines)


async def text_with(live: LivePlatform, text: Json, status: str) -> dict[str, Any]:
    """Return a text message once it has this status."""
    async with asyncio.timeout(20):
        while True:
            items: Any = (await live.caller.get(f"/v1/sms/conversations/{text['conversation_id']}/messages")).json[
                "items"
            ]
            found = next(item for item in items if item["id"] == text["id"])
            if found["status"] == status:
                return dict(found)
            await asyncio.sleep(0.05)


async def only_call(live: LivePlatform) -> dict[str, Any]:
    """Return the only call, once it is over."""
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    (found,) = items
    return await live.ended(found["id"])


async def events_of(live: LivePlatform, call_id: object) -> list[str]:
    """Return the names of a call's events, in order."""
    async with live.runtime.database.tenant(live.caller.organization_id) as session:
        rows = await session.exec(select(Event).order_by(col(Event.created_at)))
        return [row.name for row in rows.all() if row.data.get("call_id") == str(call_id)]


async def wait_until_answered(live: LivePlatform, call_id: object) -> None:
    """Wait until a call has been answered."""
    async with asyncio.timeout(20):
        while True:
            if (await live.caller.get(f"/v1/calls/{call_id}")).json["status"] == "in-progress":
                return
            await asyncio.sleep(0.05)


@asynccontextmanager
async def loopback_line(runtime: Runtime, organizations: Organizations) -> AsyncIterator[Line]:
    """A bakery with a number of the loopback carrier."""
    async with listening(runtime):
        live = await bakery(runtime, await organizations.make(), fresh_number())
        yield Line("loopback", live, LoopbackPeople(runtime, live))


async def _bakery_at(
    runtime: Runtime, organizations: Organizations, carrier: str, settings: dict[str, JsonValue]
) -> LivePlatform:
    """Create a bakery with a number of this carrier, and the loopback carrier as the second choice."""
    caller = await organizations.make()
    async with runtime.database.tenant(caller.organization_id) as session:
        wanted = ProviderSpec(Capability.TELEPHONY, carrier, settings)
        await configure_providers(
            session, runtime.registry, runtime.keyring, [wanted, *list_embedded_providers(runtime.registry)]
        )
    return await bakery(runtime, caller, fresh_number())


@asynccontextmanager
async def twilio_line(
    runtime: Runtime, organizations: Organizations, **settings: JsonValue
) -> AsyncIterator[tuple[Line, TwilioServer]]:
    """A bakery with a Twilio number."""
    async with listening_twilio() as twilio, listening(runtime):
        account: dict[str, JsonValue] = {
            "account_sid": twilio.account_sid,
            "auth_token": twilio.auth_token,
            "base_url": twilio.address,
        }
        yield (
            Line("twilio", await _bakery_at(runtime, organizations, "twilio", {**account, **settings}), twilio),
            twilio,
        )


@asynccontextmanager
async def telnyx_line(
    runtime: Runtime, organizations: Organizations, **settings: JsonValue
) -> AsyncIterator[tuple[Line, TelnyxServer]]:
    """A bakery with a Telnyx number."""
    async with listening_telnyx() as telnyx, listening(runtime):
        yield (
            Line("telnyx", await _bakery_at(runtime, organizations, "telnyx", {**telnyx.settings, **settings}), telnyx),
            telnyx,
        )
