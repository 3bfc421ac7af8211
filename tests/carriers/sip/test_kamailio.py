"""A trunk behind Kamailio: registration and digests in both directions, and a registrar that was killed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import JsonValue

from tests.carriers.sip.baresip import Baresip, find_telephone_port, run_baresip
from tests.carriers.sip.kamailio import PASSWORD, USER, Kamailio, run_kamailio
from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.free_ports import find_free_port

pytestmark = pytest.mark.system
PERSON = "+15550100001"


@asynccontextmanager
async def open_registered_line(sip_lines: SipLines) -> AsyncIterator[tuple[SipLine, Kamailio, Baresip]]:
    """A gateway that has registered at Kamailio, and a telephone at Kamailio's other side."""
    port, telephone_port = find_free_port(), find_telephone_port()
    trunk: dict[str, JsonValue] = {
        "name": "office",
        "hosts": [f"127.0.0.1:{port}"],
        "username": USER,
        "registers": True,
    }
    async with (
        run_kamailio(sip_lines.folder / "kamailio", port, telephone_port) as kamailio,
        sip_lines.open(trunk, passwords={"office": PASSWORD}) as line,
        run_baresip(
            sip_lines.folder / "baresip",
            PERSON,
            port=telephone_port,
            options=f'audio_codecs=pcmu;answermode=auto;outbound="sip:127.0.0.1:{port}"',
        ) as telephone,
    ):
        await kamailio.wait_for_registrations(1)
        yield line, kamailio, telephone


async def converse(line: SipLine, telephone: Baresip, call_id: str) -> None:
    """Ask a question, and have the agent say goodbye."""
    await line.wait_until_said(call_id, "agent", "bakery on the corner")
    await telephone.say("what are your opening hours")
    await line.wait_until_said(call_id, "agent", "seven to six")
    await telephone.say("goodbye")
    call = await line.live.wait_for_end(call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "agent_hung_up"), call


async def test_conversations_through_a_registrar_and_proxy(sip_lines: SipLines) -> None:
    async with open_registered_line(sip_lines) as (line, kamailio, telephone):
        await telephone.command("dial", f"sip:{line.live.number}@127.0.0.1:{kamailio.port}")
        await telephone.wait_for("CALL_ESTABLISHED")
        await converse(line, telephone, await line.find_call(direction="inbound"))
        await telephone.wait_for("CALL_CLOSED")
        await telephone.fall_silent()
        placed = await line.live.place_call(PERSON)
        await telephone.wait_for("CALL_ESTABLISHED", count=2)
        await converse(line, telephone, str(placed["id"]))


async def test_calls_reach_the_gateway_once_a_killed_registrar_is_back(sip_lines: SipLines) -> None:
    async with open_registered_line(sip_lines) as (line, kamailio, telephone):
        await kamailio.kill()
        await kamailio.start()
        await kamailio.wait_for_registrations(2)
        for ordinal in range(1, 6):
            await telephone.command("dial", f"sip:{line.live.number}@127.0.0.1:{kamailio.port}")
            await telephone.wait_for("CALL_ESTABLISHED", count=ordinal)
            await telephone.command("hangup")
            await telephone.wait_for("CALL_CLOSED", count=ordinal)
