"""A platform whose organization has a carrier, and people who call and text over it.

To add a carrier, write a wire server that plays the loopback carrier's people (`tests/carriers/twilio`), a `…_line`
here, and a parameter of the scenarios' fixture.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import JsonValue
from sqlmodel import col, select
from switchboard.apps.tenant_files.defaults import list_embedded_providers
from switchboard.engine.providers.configuration import ProviderSpec, configure_providers
from switchboard.foundation.encryption.content import open_content
from switchboard.foundation.events.models import Event
from switchboard.plugin_sdk import SimulatedCall, SimulatedCarrier, SpokenLine, TelephonyProvider
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.phone_numbers import purchases
from switchboard.runtime import Runtime

from tests.carriers.plivo.rest import serve_plivo
from tests.carriers.plivo.server import PlivoServer
from tests.carriers.sip.gateway import FixedAccounts, build_provider_account, build_settings, run_gateway
from tests.carriers.sip.people import run_people
from tests.carriers.telnyx.rest import serve_telnyx
from tests.carriers.telnyx.server import TelnyxServer
from tests.carriers.twilio.rest import serve_twilio
from tests.carriers.twilio.server import TwilioServer
from tests.fixtures.app import (
    Caller,
    LivePlatform,
    Organizations,
    create_bakery,
    create_bakery_agent,
    fresh_number,
    run_server,
)
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.json_access import Json

PERSON = "+15550100001"


class People(Protocol):
    """The telephones of other people."""

    async def simulate_call(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
        """Call one of the organization's numbers and say these lines."""

    async def text(self, from_number: str, to_number: str, body: str) -> str:
        """Send a text message to one of the organization's numbers and return the carrier's id for it."""


@dataclass(frozen=True, slots=True)
class LoopbackPeople:
    """The people of the loopback carrier."""

    runtime: Runtime
    live: LivePlatform

    async def simulate_call(self, from_number: str, to_number: str, lines: Sequence[str]) -> SimulatedCall:
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

    async def simulate_call(self, *lines: str) -> SimulatedCall:
        """Call the bakery and say these lines."""
        return await self.people.simulate_call(PERSON, self.live.number, lines)


async def wait_for_message_status(live: LivePlatform, text: Json, status: str) -> dict[str, Any]:
    """Return a text message once it has this status."""

    async def look() -> dict[str, Any]:
        path = f"/v1/sms/conversations/{text['conversation_id']}/messages"
        items: Any = (await live.caller.get(path)).json["items"]
        return dict(next(item for item in items if item["id"] == text["id"]))

    return await eventually(look, lambda message: message["status"] == status)


async def wait_for_only_call(live: LivePlatform) -> dict[str, Any]:
    """Return the only call, once it is over."""
    items: Any = (await live.caller.get("/v1/calls")).json["items"]
    (call,) = items
    return await live.wait_for_end(call["id"])


async def list_call_events(live: LivePlatform, call_id: object) -> list[str]:
    """Return the names of a call's events, in order."""
    async with live.runtime.database.write(live.caller.organization_id) as session:
        rows = await session.exec(select(Event).order_by(col(Event.created_at)))
        events = rows.all()
        await open_content(session, *events)
        return [event.name for event in events if event.data.value.get("call_id") == str(call_id)]


async def wait_until_answered(live: LivePlatform, call_id: object) -> None:
    """Wait until a call has been answered."""

    async def read_status() -> object:
        return (await live.caller.get(f"/v1/calls/{call_id}")).json["status"]

    await eventually(read_status, lambda status: status == "in-progress")


@asynccontextmanager
async def open_loopback_line(runtime: Runtime, organizations: Organizations) -> AsyncIterator[Line]:
    """A bakery with a number of the loopback carrier."""
    async with run_server(runtime):
        live = await create_bakery(runtime, await organizations.create(), fresh_number())
        yield Line("loopback", live, LoopbackPeople(runtime, live))


async def _create_bakery(
    runtime: Runtime,
    organizations: Organizations,
    carrier: str,
    settings: dict[str, JsonValue],
    providers: Sequence[ProviderSpec] = (),
) -> LivePlatform:
    """Create a bakery with a number of this carrier, and the loopback carrier as the second choice.

    Other capabilities have these providers, and otherwise those that need no vendor.
    """
    caller = await organizations.create()
    await _configure(runtime, caller, carrier, settings, providers)
    return await create_bakery(runtime, caller, fresh_number())


async def _configure(
    runtime: Runtime,
    caller: Caller,
    carrier: str,
    settings: dict[str, JsonValue],
    providers: Sequence[ProviderSpec] = (),
) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        provider = ProviderSpec(Capability.TELEPHONY, carrier, settings)
        embedded = list_embedded_providers(runtime.registry)
        await configure_providers(session, runtime.registry, runtime.keyring, [provider, *providers, *embedded])


@asynccontextmanager
async def open_twilio_line(
    runtime: Runtime, organizations: Organizations, *providers: ProviderSpec, **settings: JsonValue
) -> AsyncIterator[tuple[Line, TwilioServer]]:
    """A bakery with a Twilio number, and with these providers of other capabilities."""
    async with serve_twilio() as twilio, run_server(runtime):
        account: dict[str, JsonValue] = {
            "account_sid": twilio.account_sid,
            "auth_token": twilio.auth_token,
            "base_url": twilio.address,
        }
        live = await _create_bakery(runtime, organizations, "twilio", {**account, **settings}, providers)
        yield Line("twilio", live, twilio), twilio


@asynccontextmanager
async def open_telnyx_line(
    runtime: Runtime, organizations: Organizations, **settings: JsonValue
) -> AsyncIterator[tuple[Line, TelnyxServer]]:
    """A bakery with a Telnyx number."""
    async with serve_telnyx() as telnyx, run_server(runtime):
        yield (
            Line(
                "telnyx",
                await _create_bakery(runtime, organizations, "telnyx", {**telnyx.settings, **settings}),
                telnyx,
            ),
            telnyx,
        )


@asynccontextmanager
async def open_plivo_line(
    runtime: Runtime, organizations: Organizations, **settings: JsonValue
) -> AsyncIterator[tuple[Line, PlivoServer]]:
    """A bakery with a Plivo number."""
    async with serve_plivo() as plivo, run_server(runtime):
        live = await _create_bakery(runtime, organizations, "plivo", {**plivo.settings, **settings})
        yield Line("plivo", live, plivo), plivo


@asynccontextmanager
async def open_sip_line(runtime: Runtime, organizations: Organizations) -> AsyncIterator[Line]:
    """A bakery with a number of a SIP trunk, behind a gateway in this process."""
    sip_port, control_port = find_free_port(), find_free_port()
    async with run_people(sip_port) as people, run_server(runtime):
        office: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{people.port}"], "text_messages": True}
        settings = build_settings(control_port, office)
        caller = await organizations.create()
        await _configure(runtime, caller, "sip", settings)
        agent_id, number = await create_bakery_agent(runtime, caller), fresh_number()
        entered = await enter_number(caller, number, agent_id)
        live = LivePlatform(runtime, caller, agent_id, str(entered["id"]), number)
        callbacks = purchases.build_callback_urls(runtime.settings.base_url, caller.organization_id, "sip")
        account = build_provider_account(settings, callbacks.events, caller.organization_id)
        async with run_gateway(FixedAccounts([account]), sip_port=sip_port, control_port=control_port):
            yield Line("sip", live, people)


async def enter_number(caller: Caller, number: str, agent_id: object) -> dict[str, Any]:
    """Enter a number of a trunk, and return it."""
    body = {"numbers": [{"phone_number": number}], "inbound_agent_id": agent_id}
    entered: Any = await caller.post("/v1/phone-numbers/enter", body)
    assert entered.status == 201, entered.body
    (item,) = entered.json["items"]
    assert isinstance(item, dict)
    return item
