"""`switchboard doctor --trunk-call`: a real call over the trunks, measured, and what to fix after each failure."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import JsonValue

from tests.carriers.sip.baresip import Baresip, find_telephone_port, run_baresip
from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.command_line import Operator
from tests.fixtures.debian_tools import find_tool, run_program
from tests.fixtures.free_ports import find_free_port, find_free_ports

pytestmark = pytest.mark.system
PERSON = "+15550100001"
Finding = Mapping[str, Any]


async def call_trunk(operator: Operator, line: SipLine, to_number: str) -> Finding:
    """Run `doctor`, and return its finding about the call."""
    arguments = ("doctor", "--trunk-call", to_number, "--org", str(line.live.caller.organization_id), "--json")
    printed = (await asyncio.to_thread(operator.run, *arguments)).stdout
    findings: list[Finding] = json.loads(printed)["findings"]
    (found,) = [each for each in findings if "a call over sip" in each["what"]]
    return found


def describe_trunk(port: int, **more: JsonValue) -> dict[str, JsonValue]:
    return {"name": "office", "hosts": [f"127.0.0.1:{port}"], **more}


@asynccontextmanager
async def run_answering_sipp(sip_lines: SipLines, port: int) -> AsyncIterator[None]:
    """Run SIPp's own scenario of a callee, which answers and sends no audio."""
    program = find_tool("sipp", package="sip-tester")
    arguments = ("-sn", "uas", "-i", "127.0.0.1", "-p", str(port), "-mp", str(find_free_ports(10)), "-nostdin")
    async with run_program(program, *arguments, log=sip_lines.folder / "sipp.log"):
        yield


async def test_a_call_with_sound_both_ways(sip_lines: SipLines, operator: Operator) -> None:
    port = find_telephone_port()
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(
            sip_lines.folder / "baresip", PERSON, port=port, options="audio_codecs=pcmu;answermode=auto"
        ) as telephone,
    ):
        speaking = asyncio.create_task(speak_when_answered(telephone))
        found = await call_trunk(operator, line, PERSON)
        await speaking
        await telephone.wait_for("CALL_CLOSED")
    assert found["ok"], found
    assert "answered over trunk office" in found["what"]
    assert "audio to the trunk: 0.0% lost" in found["what"]


async def speak_when_answered(telephone: Baresip) -> None:
    await telephone.wait_for("CALL_ESTABLISHED", seconds=60)
    await telephone.say("hello, this is the telephone that you have called, and I can hear you")


async def test_no_audio_names_the_address_to_which_the_trunk_sends(sip_lines: SipLines, operator: Operator) -> None:
    port = find_free_port()
    async with sip_lines.open(describe_trunk(port)) as line, run_answering_sipp(sip_lines, port):
        found = await call_trunk(operator, line, PERSON)
    assert not found["ok"]
    assert "0 packets came" in found["what"]
    assert "No audio comes from the trunk: it was told to send to 127.0.0.1." in found["advice"]
    assert "--public-address" in found["advice"]


async def test_refusals_say_what_to_fix(sip_lines: SipLines, operator: Operator) -> None:
    far_end = FarEnd(find_free_port())
    await far_end.start()
    silent = describe_trunk(find_free_port()) | {"name": "silent"}
    async with sip_lines.open(silent, describe_trunk(far_end.port)) as line:
        advice = {
            status: (await call_trunk(operator, line, f"+155501000{ending}"))["advice"]
            for status, ending in ((404, "23"), (403, "26"), (488, "27"), (486, "20"))
        }
    await far_end.stop()
    assert "Trunk silent: " in advice[404]
    assert "check host, port, and `transport`" in advice[404]
    assert "`plus = false`" in advice[404]
    assert "SIP 403" in advice[403]
    assert "allow the gateway's address and the caller id" in advice[403]
    assert "compare `srtp`" in advice[488]
    assert "name a number that answers" in advice[486]


async def test_wrong_use_and_a_gateway_that_is_away(sip_lines: SipLines, operator: Operator) -> None:
    wrong = await asyncio.to_thread(operator.run, "doctor", "--trunk-call", "5550100001")
    assert (wrong.returncode, "international form" in wrong.stderr) == (2, True)
    async with sip_lines.open(describe_trunk(find_free_port())) as line:
        pass
    found = await call_trunk(operator, line, PERSON)
    assert "Run `switchboard sip-gateway`" in found["advice"]
