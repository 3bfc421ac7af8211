"""Scenarios of SIPp beside plain calls: early media, redirections, another codec, and comfort noise by aiortp."""

import asyncio
from typing import Any

import numpy as np
import pytest
from aiortp import RTPSession
from pydantic import JsonValue
from switchboard.plugin_sdk.audio import encode_audio

from tests.carriers.sip import sipp
from tests.carriers.sip.far_end import FarEnd
from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port, find_free_ports

pytestmark = pytest.mark.system
PERSON = "+15550100031"
SECOND = 16_000
"""Bytes of a second of 16-bit samples."""
QUESTION = bytes(6 * SECOND) + speak_as_caller("what are your opening hours") + bytes(9 * SECOND)
QUESTION_SECONDS = len(QUESTION) / SECOND
GOODBYE = speak_as_caller("goodbye")
FAREWELL = GOODBYE + bytes(40 * SECOND)


def describe_trunk(port: int) -> dict[str, JsonValue]:
    return {"name": "office", "hosts": [f"127.0.0.1:{port}"]}


def encode(samples: bytes, encoding: str = "mulaw") -> bytes:
    return bytes(encode_audio(np.frombuffer(samples, "<i2"), "alaw" if encoding == "alaw" else "mulaw"))


async def check_conversation(line: SipLine, call_id: str) -> None:
    """Check that the question was answered, and that the caller's goodbye ended the call."""
    call = await line.live.wait_for_end(call_id)
    lines = await line.list_transcript(call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "agent_hung_up"), lines
    assert any("seven to six" in text for _, text in lines), lines


async def test_early_media_is_not_a_part_of_the_conversation(sip_lines: SipLines) -> None:
    """The trunk's announcement before the answer says goodbye, and nobody takes it for the callee's words."""
    folder, port = sip_lines.folder / "sipp", find_free_port()
    folder.mkdir()
    (folder / "early.ul").write_bytes(encode(GOODBYE + bytes(SECOND)))
    (folder / "said.ul").write_bytes(encode(QUESTION + FAREWELL))
    steps = [
        sipp.respond("183 Session Progress", described=True),
        sipp.stream(folder / "early.ul"),
        sipp.pause(3),
        sipp.respond("200 OK", retransmit=True, described=True),
        '  <recv request="ACK"/>',
        sipp.stream(folder / "said.ul"),
        sipp.BYE,
    ]
    async with sip_lines.open(describe_trunk(port)) as line, sipp.run_callee(folder, steps, port=port):
        placed = await line.live.place_call(PERSON)
        await check_conversation(line, str(placed["id"]))
        said = [text for role, text in await line.list_transcript(placed["id"]) if role == "user"]
        assert "goodbye" not in said[0].lower(), said


@pytest.mark.parametrize(("number", "is_followed"), [(PERSON, True), ("+15550100032", False)])
async def test_a_call_is_redirected_to_the_same_number_only(
    sip_lines: SipLines, number: str, is_followed: bool
) -> None:
    port, elsewhere = find_free_port(), FarEnd(find_free_port())
    await elsewhere.start()
    contact = f"<sip:{number}@127.0.0.1:{elsewhere.port}>"
    steps = [sipp.respond("302 Moved Temporarily", contact=contact), '  <recv request="ACK"/>']
    async with sip_lines.open(describe_trunk(port)) as line, sipp.run_callee(sip_lines.folder / "s", steps, port=port):
        placed = await line.live.place_call(PERSON)
        if is_followed:
            telephone = await elsewhere.wait_for_telephone()
            await line.wait_until_said(placed["id"], "agent", "bakery on the corner")
            await telephone.dialog.bye()
        ended = await line.live.wait_for_end(placed["id"])
        assert ended["status"] == ("completed" if is_followed else "failed"), ended
        assert is_followed or "moved to another number (SIP 302)" in str(ended["error_message"])
        assert len(elsewhere.invites) == is_followed
    await elsewhere.stop()


async def test_the_codec_of_a_call_changes_while_it_goes_on(sip_lines: SipLines) -> None:
    folder = sip_lines.folder / "sipp"
    folder.mkdir()
    question, farewell = folder / "question.ul", folder / "farewell.al"
    question.write_bytes(encode(QUESTION + bytes(60 * SECOND)))
    farewell.write_bytes(encode(bytes(SECOND) + FAREWELL, "alaw"))
    async with sip_lines.open(describe_trunk(find_free_port())) as line:
        steps = [
            sipp.offer(PERSON, line.live.number),
            sipp.stream(question),
            sipp.pause(QUESTION_SECONDS),
            sipp.offer(PERSON, line.live.number, sequence=2, codec=sipp.PCMA),
            sipp.stream(farewell, sipp.PCMA),
            sipp.BYE,
        ]
        await sipp.run_scenario(folder, steps, gateway_port=line.sip_port)
        await check_conversation(line, await line.find_call(from_number=PERSON))


async def test_a_peer_sends_comfort_noise_instead_of_silence(sip_lines: SipLines) -> None:
    """Its packets stop between the words, but for one of comfort noise every 3 seconds (RFC 3389)."""
    port = find_free_ports(2)
    place = ("127.0.0.1", port)
    telephone = await RTPSession.create(place, ("127.0.0.1", 9), 0, paced=True, cn=True, symmetric_rtp=True)
    description = (
        f"v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio {port} RTP/AVP 0 13\n"
        "a=rtpmap:0 PCMU/8000\na=rtpmap:13 CN/8000\n"
    )

    def say(words: str) -> None:
        samples = speak_as_caller(words) + bytes(SECOND)  # Its noise is as loud as what came last.
        for start in range(0, len(samples) - 319, 320):
            telephone.send_audio_pcm_auto(samples[start : start + 320])

    async with sip_lines.open(describe_trunk(find_free_port())) as line:
        steps = [sipp.offer(PERSON, line.live.number, description=description), sipp.BYE]
        folder = sip_lines.folder / "sipp"
        signaling = asyncio.create_task(sipp.run_scenario(folder, steps, gateway_port=line.sip_port))
        call_id = await line.find_call(from_number=PERSON)
        await line.wait_until_said(call_id, "agent", "bakery on the corner")
        say("what are your opening hours")
        await line.wait_until_said(call_id, "agent", "seven to six")
        say("goodbye")
        await check_conversation(line, call_id)
        await signaling

        async def look() -> Any:
            return (await line.live.caller.get(f"/v1/calls/{call_id}")).json["quality"]

        quality: Any = await eventually(look)
    assert quality["loss_share"] == 0, quality
    assert telephone.stats["cn_sent"] > 1, telephone.stats
    await telephone.close()
