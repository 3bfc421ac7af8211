"""A call over a network that loses a fifth of the packets and delays the others by up to 60 ms, in both directions.

`LOSSY_CALL_SECONDS=600` makes it ten minutes long; the benchmarks have the result of that.
"""

import asyncio
import os
from collections import Counter
from typing import Any

import pytest
import structlog
from pydantic import JsonValue
from switchboard.plugin_sdk.audio import transcode_audio

from tests.carriers.sip.far_end import FarEnd, Telephone
from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.caller_voice import speak_as_caller
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.media_relay import MediaRelay

logger = structlog.get_logger()
SECONDS = float(os.environ.get("LOSSY_CALL_SECONDS", "30"))
pytestmark = [pytest.mark.system, pytest.mark.timeout(int(SECONDS) + 180)]
PERSON, LOSS, JITTER = "+15550100001", 0.2, 0.06
QUESTION, ANSWER = "what are your opening hours", "seven to six"
ANSWER_SECONDS = 15.0


async def count_lines(line: SipLine, call_id: str, role: str, words: str) -> int:
    return sum(speaker == role and words in text for speaker, text in await line.list_transcript(call_id))


async def ask(line: SipLine, call_id: str, telephone: Telephone) -> bool:
    """Ask the question, and return whether the agent answers."""
    known = await count_lines(line, call_id, "agent", ANSWER)
    telephone.media.play(transcode_audio(speak_as_caller(QUESTION), "pcm16", "mulaw"))

    async def look() -> int:
        return await count_lines(line, call_id, "agent", ANSWER)

    try:
        await eventually(look, lambda found: found > known, seconds=ANSWER_SECONDS)
    except AssertionError:
        return False
    return True


async def say_goodbye(line: SipLine, call_id: str, telephone: Telephone) -> dict[str, Any]:
    """Say goodbye, again if that is not understood, and return the call once the agent has hung up."""
    for _ in range(3):
        telephone.media.play(transcode_audio(speak_as_caller("goodbye"), "pcm16", "mulaw"))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await telephone.events.over.wait()
            break
        except TimeoutError:
            continue
    return await line.live.wait_for_end(call_id)


async def test_a_lossy_call_is_understood_to_its_end(sip_lines: SipLines) -> None:
    trunk = FarEnd(find_free_port())
    await trunk.start()
    office: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{trunk.port}"]}
    asked = understood = 0
    async with sip_lines.open(office) as line, MediaRelay(loss=LOSS, jitter=JITTER) as relay:
        loop = asyncio.get_running_loop()
        until = loop.time() + SECONDS
        telephone = await trunk.call(line.sip_port, line.live.number, from_number=PERSON, relay=relay)
        call_id = await line.find_call(from_number=PERSON)
        await line.wait_until_said(call_id, "agent", "bakery on the corner")
        while loop.time() < until and not telephone.events.over.is_set():
            asked += 1
            understood += await ask(line, call_id, telephone)
        call = await say_goodbye(line, call_id, telephone)
        heard_words = Counter(text for role, text in await line.list_transcript(call_id) if role == "user")

        async def look() -> Any:
            return (await line.live.caller.get(f"/v1/calls/{call_id}")).json["quality"]

        quality: Any = await eventually(look)
        heard = telephone.media.quality
    await trunk.stop()
    logger.info("lossy call", asked=asked, understood=understood, words=heard_words, platform=quality, caller=heard)
    assert (call["status"], call["ended_reason"]) == ("completed", "agent_hung_up"), call
    assert call["duration_seconds"] > SECONDS - 10
    # A short call has four to six questions, one of which may be among the losses.
    assert understood >= 0.9 * (asked - 1), (understood, asked)
    assert abs(quality["loss_share"] - LOSS) < 0.06, quality
    assert heard.late_share < 0.05, heard
