"""Calls with baresip, a telephone of another maker: conversations, keys, hold, transfers, and hanging up early."""

import asyncio
from typing import Any

import pytest
from pydantic import JsonValue
from switchboard.engine.conversation.media.conversion import Converter
from switchboard.plugin_sdk import PHONE_PCM, SpeechRequest, TextToSpeechProvider
from switchboard_offline.loopback.persons import VOICE

from tests.carriers.sip.baresip import Baresip, find_telephone_port, run_baresip
from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.eventually import eventually
from tests.fixtures.recorded_audio import read_channels, was_heard

pytestmark = pytest.mark.system
PERSON, CALLER = "+15550100001", "+15550100002"
INTRODUCTION, INTRODUCTION_SECONDS = "Ada is on the line, about an order of bread.", 8
INTRODUCES = (
    'When the caller says "can I speak to a human": say "One moment." and '
    f'call transfer_call(to_number="{PERSON}", introduction="{INTRODUCTION}")'
)
EARLY_SECONDS = [step * 0.02 for step in range(25)]
"""Times after which a caller hangs up: before, while, and after the call is answered."""


def describe_trunk(port: int, **more: JsonValue) -> dict[str, JsonValue]:
    return {"name": "office", "hosts": [f"127.0.0.1:{port}"], **more}


async def begin_call(line: SipLine, telephone: Baresip, number: str = PERSON) -> str:
    """Call the bakery, and return the call's id once the agent has greeted."""
    await telephone.command("dial", f"sip:{line.live.number}@{line.host}:{line.sip_port}")
    await telephone.wait_for("CALL_ESTABLISHED")
    call_id = await line.find_call(from_number=number)
    await line.wait_until_said(call_id, "agent", "bakery on the corner")
    return call_id


async def wait_for_quality(line: SipLine, call_id: str) -> dict[str, Any]:
    """Return the quality of a call, which the gateway reports after its end."""

    async def look() -> Any:
        return (await line.live.caller.get(f"/v1/calls/{call_id}")).json["quality"]

    return dict(await eventually(look))


async def test_a_conversation_in_which_each_side_hears_the_other(sip_lines: SipLines) -> None:
    port = find_telephone_port()
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(sip_lines.folder / "baresip", PERSON, port=port) as telephone,
    ):
        call_id = await begin_call(line, telephone)
        said = await telephone.say("what are your opening hours")
        await line.wait_until_said(call_id, "agent", "seven to six")
        await telephone.say("goodbye")
        await telephone.wait_for("CALL_CLOSED", seconds=40)
        call = await line.live.wait_for_end(call_id)
        recording = await line.live.wait_for_recording(call_id)
        quality = await wait_for_quality(line, call_id)
    assert (call["status"], call["ended_reason"]) == ("completed", "agent_hung_up"), call
    assert quality["loss_share"] < 0.1, quality
    assert quality["mos"] > 3, "a busy machine sends with jitter"
    caller, agent = read_channels(recording)
    assert was_heard(said, caller), "the platform heard what the telephone said"
    assert was_heard(agent, telephone.read_heard()), "the telephone heard the agent to the end"


@pytest.mark.parametrize(
    ("host", "trunk", "options"),
    [
        ("127.0.0.1", {"srtp": "required"}, "audio_codecs=pcmu;mediaenc=srtp-mand"),
        ("::1", {"transport": "tcp"}, "audio_codecs=g722/16000/1;transport=tcp"),
        ("127.0.0.1", {}, "audio_codecs=pcma"),
        ("127.0.0.1", {}, "audio_codecs=opus/48000/2"),
    ],
    ids=["encrypted", "wideband over TCP and IPv6", "A-law", "Opus"],
)
async def test_other_audio_and_transports(
    sip_lines: SipLines,
    host: str,
    trunk: dict[str, JsonValue],
    options: str,
) -> None:
    port = find_telephone_port()
    place = f"[{host}]" if ":" in host else host
    office = describe_trunk(port, **trunk) | {"hosts": [f"{place}:{port}"]}
    async with (
        sip_lines.open(office, host=host) as line,
        run_baresip(sip_lines.folder / "baresip", PERSON, host=place, port=port, options=options) as telephone,
    ):
        call_id = await begin_call(line, telephone)
        await telephone.say("goodbye")
        await telephone.wait_for("CALL_CLOSED", seconds=40)
        call = await line.live.wait_for_end(call_id)
        recording = await line.live.wait_for_recording(call_id)
    assert call["ended_reason"] == "agent_hung_up", call
    likeness = 0.75 if "opus" in options else 0.9
    assert was_heard(read_channels(recording)[1], telephone.read_heard(), likeness=likeness)


@pytest.mark.parametrize("way", ["rtpevent", "info"])
async def test_keys_in_packets_and_in_requests(sip_lines: SipLines, way: str) -> None:
    port = find_telephone_port()
    options = f"audio_codecs=pcmu;dtmfmode={way}"
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(sip_lines.folder / "baresip", PERSON, port=port, options=options) as telephone,
    ):
        call_id = await begin_call(line, telephone)
        for key in "4082#":
            await telephone.command("sndcode", key)
            await asyncio.sleep(0.3)  # baresip presses a key until the next command, and reports nothing
        await line.wait_until_said(call_id, "user", "DTMF: 4082")
        await telephone.command("hangup")
        assert (await line.live.wait_for_end(call_id))["ended_reason"] == "caller_hung_up"


async def test_a_call_goes_on_after_it_was_held(sip_lines: SipLines) -> None:
    port = find_telephone_port()
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(sip_lines.folder / "baresip", PERSON, port=port) as telephone,
    ):
        call_id = await begin_call(line, telephone)
        await telephone.command("hold")
        await telephone.wait_for("CALL_REMOTE_SDP", count=2)
        await telephone.command("resume")
        await telephone.wait_for("CALL_REMOTE_SDP", count=3)
        await telephone.say("what are your opening hours")
        await line.wait_until_said(call_id, "agent", "seven to six")
        await telephone.command("hangup")
        assert (await line.live.wait_for_end(call_id))["ended_reason"] == "caller_hung_up"


async def test_a_call_is_placed_and_transferred_to_a_person(sip_lines: SipLines) -> None:
    """The trunk is a telephone that answers every number, first as the customer and then as the person."""
    port = find_telephone_port()
    answers = "audio_codecs=pcmu;answermode=auto"
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(sip_lines.folder / "baresip", PERSON, port=port, options=answers) as telephone,
    ):
        call_id = str((await line.live.place_call(PERSON))["id"])
        await telephone.wait_for("CALL_ESTABLISHED")
        await line.wait_until_said(call_id, "agent", "bakery on the corner")
        await telephone.say("can I speak to a human")
        await telephone.wait_for("CALL_ESTABLISHED", count=2)

        async def look() -> Any:
            return (await line.live.caller.get(f"/v1/calls/{call_id}")).json

        call: Any = await eventually(look, lambda call: call["ended_at"] is not None)
        assert (call["ended_reason"], call["transferred_to"]) == ("transferred", PERSON), call
        assert "CALL_CLOSED" not in telephone.events, "both parties go on talking"
        await telephone.command("hangup")
        await telephone.wait_for("CALL_CLOSED", count=2)


async def test_a_person_hears_who_calls_and_accepts(sip_lines: SipLines) -> None:
    """One telephone calls the agent, another is the trunk's, which answers every number."""
    port = find_telephone_port()
    answers = "audio_codecs=pcmu;answermode=auto"
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(sip_lines.folder / "person", PERSON, port=port, options=answers) as person,
        run_baresip(sip_lines.folder / "caller", CALLER) as caller,
    ):
        agent = f"/v1/agents/{line.live.agent_id}"
        settings = {"system_prompt": INTRODUCES, "tts_voice_id": VOICE}
        assert (await line.live.caller.send("PUT", agent, settings)).status == 200
        call_id = await begin_call(line, caller, CALLER)
        await caller.say("can I speak to a human")
        await person.wait_for("CALL_ESTABLISHED")
        await asyncio.sleep(INTRODUCTION_SECONDS)  # baresip does not report what it hears
        assert "CALL_CLOSED" not in caller.events, "the caller is with the agent"
        await person.command("sndcode", "1")
        call = await line.live.wait_for_end(call_id)
        assert (call["ended_reason"], call["transferred_to"]) == ("transferred", PERSON), call
        answer = await person.say("hello there this is the bakery")
        question = await caller.say("I would like to order bread")
        await asyncio.sleep(5)  # as long as they talk
        await caller.command("hangup")
        await person.wait_for("CALL_CLOSED")
        await caller.wait_for("CALL_CLOSED")
    assert was_heard(question, person.read_heard()), "the person heard the caller"
    assert was_heard(answer, caller.read_heard()), "the caller heard the person"
    async with line.live.runtime.providers.use(line.live.caller.organization_id, TextToSpeechProvider) as voice:
        spoken = Converter(voice.audio_format, PHONE_PCM)
        request = SpeechRequest(INTRODUCTION, VOICE)
        audio = b"".join([spoken.convert(chunk.audio) async for chunk in voice.synthesize(request)])
    assert was_heard(audio, person.read_heard()), "the person heard the introduction"


async def test_callers_who_hang_up_early_leave_nothing(sip_lines: SipLines) -> None:
    port = find_telephone_port()
    async with (
        sip_lines.open(describe_trunk(port)) as line,
        run_baresip(sip_lines.folder / "baresip", PERSON, port=port) as telephone,
    ):
        for ordinal, seconds in enumerate(EARLY_SECONDS, start=1):
            await telephone.command("dial", f"sip:{line.live.number}@127.0.0.1:{line.sip_port}")
            await asyncio.sleep(seconds)  # any moment must do
            await telephone.command("hangup")
            await telephone.wait_for("CALL_CLOSED", count=ordinal)
        items: Any = (await line.live.caller.get("/v1/calls")).json["items"]
        ended = [await line.live.wait_for_end(item["id"]) for item in items]
        assert ended, "the later ones reached the platform"
        strange = [call for call in ended if call["status"] not in {"canceled", "completed", "no-answer"}]
        assert not strange, [(call["status"], call["ended_reason"], call["error_message"]) for call in strange]
        call_id = await begin_call_again(line, telephone, len(ended))
        await telephone.command("hangup")
        await line.live.wait_for_end(call_id)


async def begin_call_again(line: SipLine, telephone: Baresip, known: int) -> str:
    """Call once more: nothing that is left of earlier calls is in the way."""
    await telephone.command("dial", f"sip:{line.live.number}@127.0.0.1:{line.sip_port}")

    async def look() -> list[dict[str, Any]]:
        items: Any = (await line.live.caller.get("/v1/calls")).json["items"]
        return [item for item in items if item["status"] == "in-progress"]

    return str((await eventually(look))[0]["id"])
