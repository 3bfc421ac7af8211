"""Two gateways, one of which is killed while it has calls."""

from typing import Any

import pytest
from pydantic import JsonValue

from tests.carriers.sip.far_end import FarEnd, Telephone
from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

pytestmark = pytest.mark.system
LEASE_SECONDS = 120
SILENT, FIRST, SECOND, THIRD = "+15550100021", "+15550100031", "+15550100032", "+15550100033"


async def call_gateway(line: SipLine, trunk: FarEnd, gateway: int, from_number: str) -> tuple[str, Telephone]:
    """Call the bakery through one of the gateways, and return the call's id once the agent has greeted."""
    telephone = await trunk.call(line.ports[gateway].sip, line.live.number, from_number=from_number)
    call_id = await line.find_call(from_number=from_number)
    await line.wait_until_said(call_id, "agent", "bakery on the corner")
    return call_id, telephone


async def wait_for_end(line: SipLine, call_id: object) -> dict[str, Any]:
    async def look() -> Any:
        return (await line.live.caller.get(f"/v1/calls/{call_id}")).json

    return dict(await eventually(look, lambda call: call["ended_at"] is not None, seconds=LEASE_SECONDS))


async def test_a_killed_gateway_takes_its_own_calls_only(sip_lines: SipLines) -> None:
    trunk = FarEnd(find_free_port())
    await trunk.start()
    office: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"]}
    async with sip_lines.open(office, gateways=2) as line:
        ringing = await line.live.place_call(SILENT)
        await eventually(lambda: _count(trunk.invites), lambda count: count == 1)
        lost, _ = await call_gateway(line, trunk, 0, FIRST)
        kept, telephone = await call_gateway(line, trunk, 1, SECOND)
        line.gateways[0].kill()
        ended = await wait_for_end(line, lost)
        assert (ended["status"], ended["ended_reason"]) == ("failed", "provider_failed"), ended
        assert (await line.live.caller.get(f"/v1/calls/{kept}")).json["status"] == "in-progress"
        placed = await line.live.place_call(THIRD)
        await trunk.wait_for_telephone(3)
        await line.wait_until_said(placed["id"], "agent", "bakery on the corner")
        await telephone.dialog.bye()
        assert (await wait_for_end(line, kept))["ended_reason"] == "caller_hung_up"
        ended = await wait_for_end(line, ringing["id"])
        assert ended["status"] == "no-answer", ended
    await trunk.stop()


async def _count(found: list[Any]) -> int:
    return len(found)
