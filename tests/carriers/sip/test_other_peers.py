"""Conversations through SIPp and Linphone, which say a whole side of a conversation by the clock."""

import wave
from pathlib import Path

import numpy as np
import pytest
from pydantic import JsonValue
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_telephony_sip.media.tones import make_tones

from tests.carriers.sip.line import SipLine, SipLines
from tests.carriers.sip.linphone import run_linphone
from tests.carriers.sip.sipp import call_with_sipp
from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.recorded_audio import read_channels, read_samples, was_heard

pytestmark = pytest.mark.system
PERSON = "+15550100001"
SECOND = 16_000
"""Bytes of a second of 16-bit samples."""
KEYS = decode_audio(b"".join(make_tones("4082#")), "mulaw").tobytes()
QUESTION = bytes(5 * SECOND) + speak_as_caller("what are your opening hours") + bytes(9 * SECOND)
FAREWELL = speak_as_caller("goodbye") + bytes(40 * SECOND)


async def check_conversation(line: SipLine, call_id: str) -> None:
    """Check that both sides understood each other."""
    call = await line.live.wait_for_end(call_id)
    lines = await line.list_transcript(call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "agent_hung_up"), lines
    assert any("seven to six" in text for _, text in lines), lines


def write_samples(path: Path, samples: bytes) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8_000, 0, "NONE", ""))
        file.writeframes(samples)


async def test_a_conversation_with_sipp_without_telephone_events(sip_lines: SipLines) -> None:
    trunk: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{find_free_port()}"]}
    async with sip_lines.open(trunk) as line:
        await call_with_sipp(
            sip_lines.folder / "sipp",
            caller=PERSON,
            number=line.live.number,
            gateway_port=line.sip_port,
            mulaw=encode_audio(np.frombuffer(QUESTION + KEYS + bytes(9 * SECOND) + FAREWELL, "<i2"), "mulaw"),
        )
        call_id = await line.find_call(from_number=PERSON)
        await check_conversation(line, call_id)
        assert ("user", "DTMF: 4082") in await line.list_transcript(call_id), "keys are found in the audio"


async def test_a_conversation_with_linphone(sip_lines: SipLines) -> None:
    trunk: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{find_free_port()}"]}
    said, heard = sip_lines.folder / "said.wav", sip_lines.folder / "heard.wav"
    write_samples(said, QUESTION + FAREWELL)
    async with (
        sip_lines.open(trunk) as line,
        run_linphone(sip_lines.folder / "linphone", said=said, heard=heard) as telephone,
    ):
        await telephone.command(f"call sip:{line.live.number}@127.0.0.1:{line.sip_port}")
        call_id = await line.find_call(direction="inbound")
        await check_conversation(line, call_id)
        recording = await line.live.wait_for_recording(call_id)
    assert was_heard(read_channels(recording)[1], read_samples(heard)), "the telephone heard the agent to the end"


async def test_a_caller_connects_the_agent_to_another_telephone(sip_lines: SipLines) -> None:
    """Linphone calls the agent and a second Linphone, and connects the two by REFER with Replaces.

    It names the second one without a port, so that it is found where the trunk is.
    """
    port, folder = find_free_port(), sip_lines.folder
    trunk: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{port}"]}
    silence, said = folder / "silence.wav", folder / "said.wav"
    write_samples(silence, bytes(120 * SECOND))
    write_samples(said, QUESTION + FAREWELL)
    async with (
        sip_lines.open(trunk) as line,
        run_linphone(folder / "first", said=silence, heard=folder / "first.wav") as first,
        run_linphone(folder / "second", said=said, heard=folder / "second.wav", port=port) as second,
    ):
        await second.command("autoanswer enable")
        await first.command(f"call sip:{line.live.number}@127.0.0.1:{line.sip_port}")
        call_id = await line.find_call(direction="inbound")
        await line.wait_until_said(call_id, "agent", "bakery on the corner")
        await first.command("pause 1")
        await first.wait_until("is now paused")
        await first.command(f"call sip:person@127.0.0.1:{port}")
        await first.wait_until("Call 2 with")
        await first.command("transfer 1 --to-call 2")
        await line.wait_until_said(call_id, "agent", "seven to six")
        assert (await line.live.wait_for_end(call_id))["status"] == "completed"
