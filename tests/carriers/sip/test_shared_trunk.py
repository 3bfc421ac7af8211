"""Two organizations whose trunks are of one vendor, at one gateway."""

from dataclasses import replace
from typing import Any

import pytest
from pydantic import JsonValue
from switchboard_telephony_sip.commands import CheckCommand
from switchboard_telephony_sip.gateways import Gateways, NotServed
from switchboard_telephony_sip.settings import SipSettings
from switchboard_telephony_sip.signaling.outgoing import CallRefused

from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.gateway import build_settings
from tests.carriers.sip.line import SipLine, SipLines, create_sip_bakery
from tests.fixtures.app import fresh_number
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

pytestmark = pytest.mark.system
SECRET = "the second organization's signing secret"


async def add_organization(sip_lines: SipLines, line: SipLine, trunk: dict[str, JsonValue]) -> SipLine:
    """Add an organization with a trunk at the same gateway, and wait until the gateway serves it."""
    account = build_settings(line.control_port, trunk, signing_secret=SECRET)
    live = await create_sip_bakery(sip_lines.runtime, await sip_lines.organizations.create(), account)
    settings = SipSettings.model_validate(account)
    gateways = Gateways(settings.gateways, SECRET)

    async def is_served() -> bool:
        try:
            await gateways.command(settings.gateways[0], CheckCommand(settings.digest))
        except NotServed:
            return False
        return True

    await eventually(is_served)
    await gateways.close()
    return replace(line, live=live)


async def list_called(line: SipLine) -> list[str]:
    items: Any = (await line.live.caller.get("/v1/calls")).json["items"]
    return [call["to_number"] for call in items]


async def test_each_organization_gets_the_calls_of_its_own_numbers(sip_lines: SipLines) -> None:
    trunk = FarEnd(find_free_port())
    await trunk.start()
    vendor: dict[str, JsonValue] = {"name": "vendor", "hosts": [f"127.0.0.1:{trunk.port}"]}
    async with sip_lines.open(vendor) as first:
        second = await add_organization(sip_lines, first, vendor)
        for line in (second, first):
            telephone = await trunk.call(first.sip_port, line.live.number)
            call_id = await line.find_call(direction="inbound")
            await line.wait_until_said(call_id, "agent", "bakery on the corner")
            await telephone.dialog.bye()
            await line.live.wait_for_end(call_id)
        with pytest.raises(CallRefused) as refused:
            await trunk.call(first.sip_port, fresh_number())
        assert refused.value.status == 404
        assert await list_called(first) == [first.live.number]
        assert await list_called(second) == [second.live.number]
    await trunk.stop()
