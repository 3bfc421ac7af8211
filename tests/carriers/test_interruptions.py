"""Backchannels and interruptions over Twilio's wire, with Deepgram's, while agents talk.

In each call a person says "mhm" and the like while the agent talks, and then interrupts it, again and again.
"""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from pydantic import JsonValue
from switchboard.engine.providers.configuration import ProviderSpec
from switchboard.plugin_sdk.registry import Capability
from switchboard.runtime import Runtime
from switchboard_offline.loopback.persons import Person, synthesize_mulaw
from switchboard_offline.loopback.phone import Phone

from tests.carriers.lines import open_twilio_line
from tests.carriers.twilio.server import TwilioLeg
from tests.fixtures.app import LivePlatform, Organizations
from tests.fixtures.eventually import eventually
from tests.speech.deepgram import Deepgram
from tests.speech.vendor import KEY

BACKCHANNELS = ("mhm", "okay", "yeah", "exactly", "uh huh", "I see", "absolutely", "all right", "sure", "of course")
INTERRUPTION = "wait please I have a question"
ANSWER = (
    "We bake bread from rye, wheat, and spelt every morning, and on Saturdays we have rolls with seeds and cakes with "
    "apples, plums, and cherries, which many people from the whole town come for and take home to their families."
)
SECONDS_PER_WORD = 0.25
"""Pace at which the vendor recognizes words."""
STOP_SECONDS = 0.2
"""Time for which an agent may speak on after the word that decides."""
PATIENCE_SECONDS = 20.0
"""Time in which everything else happens on a busy machine."""


@dataclass
class Recognition:
    """A stream of `WordDeepgram`. It recognizes `words`, one with each piece of audio.

    `first_word_at` has the time of the first word of each utterance, by the loop's clock.
    """

    words: list[str] = field(default_factory=list)
    first_word_at: list[float] = field(default_factory=list)
    audio: int = 0
    known: int = 0
    done: int = 0

    def say(self, text: str) -> None:
        """Recognize these words in the next utterance."""
        self.words, self.known = text.split(), 0

    def add_audio(self, audio: bytes) -> dict[str, object] | None:
        """Return interim results if another word is recognized."""
        self.audio += len(audio)
        known = min(len(self.words), int(self.audio / 8000 / SECONDS_PER_WORD))
        if known <= self.known:
            return None
        if not self.known:
            self.first_word_at.append(asyncio.get_running_loop().time())
        self.known = known
        return self._build_results(self.words[:known], is_final=False)

    def finalize(self) -> dict[str, object]:
        """Return final results."""
        results = self._build_results(self.words, is_final=True)
        self.done += self.audio
        self.audio = 0
        return results

    def _build_results(self, words: list[str], *, is_final: bool) -> dict[str, object]:
        return {
            "type": "Results",
            "start": self.done / 8000,
            "duration": self.audio / 8000,
            "is_final": is_final,
            "speech_final": is_final,
            "from_finalize": is_final,
            "channel": {"alternatives": [{"transcript": " ".join(words), "confidence": 0.9, "words": []}]},
        }


class WordDeepgram(Deepgram):
    """Deepgram that recognizes what it is told. `streams` are in the order of their beginnings."""

    def __init__(self) -> None:
        super().__init__()
        self.streams: list[Recognition] = []

    async def count_streams(self) -> int:
        return len(self.streams)

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        socket = await self.socket(request)
        self.streams.append(stream := Recognition())
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                if (results := stream.add_audio(message.data)) is not None:
                    await socket.send_json(results)
            elif message.type is WSMsgType.TEXT and json.loads(message.data)["type"] == "Finalize":
                await socket.send_json(stream.finalize())
        return socket


@dataclass
class InterruptingCaller:
    """A person who shows that they listen, and then interrupts, in each round. `delays` are the agent's in stopping."""

    deepgram: WordDeepgram
    place: int
    backchannels: list[tuple[str, bytes]]
    interruption: bytes
    delays: list[float] = field(default_factory=list)

    def connect(self, leg: TwilioLeg) -> Person:
        """Return the person's behavior."""

        async def behave(phone: Phone) -> None:
            assert leg.stream is not None
            assert await phone.wait_for_voice(PATIENCE_SECONDS)
            recognition, cleared_at = self.deepgram.streams[self.place], leg.stream.cleared_at
            for words, sound in self.backchannels:
                assert await phone.wait_for_voice(PATIENCE_SECONDS)
                await phone.wait(0.4)
                stops = len(cleared_at)
                recognition.say(words)
                await phone.say(sound)
                await phone.wait(0.6)
                assert len(cleared_at) == stops, f"{words!r} does not stop the agent"
                assert await phone.wait_for_voice(PATIENCE_SECONDS), "the agent goes on"
                recognition.say(INTERRUPTION)
                await phone.say(self.interruption)
                async with asyncio.timeout(PATIENCE_SECONDS):  # an interruption stops the agent
                    while len(cleared_at) == stops:
                        await phone.wait(0.1)
                assert len(cleared_at) == stops + 1
                self.delays.append(cleared_at[-1] - recognition.first_word_at[-1])

        return behave


@pytest.mark.parametrize(("call_count", "rounds"), [(6, 5), pytest.param(10, 10, marks=pytest.mark.system)])
async def test_backchannels_never_stop_an_agent_and_interruptions_always_do(
    call_count: int, rounds: int, runtime: Runtime, organizations: Organizations
) -> None:
    async with WordDeepgram.listening() as deepgram:
        account: dict[str, JsonValue] = {"api_key": KEY, "base_url": deepgram.address}
        speech = (Capability.SPEECH_TO_TEXT, Capability.TEXT_TO_SPEECH)
        vendors = [ProviderSpec(capability, "deepgram", account) for capability in speech]
        async with open_twilio_line(runtime, organizations, *vendors) as (line, twilio):
            agent = {
                "greeting_message": ANSWER,
                "system_prompt": f'When the caller says "question": say "{ANSWER}"',
                "turn_detection": {"mode": "text"},
            }
            await line.live.caller.send("PUT", f"/v1/agents/{line.live.agent_id}", agent)
            callers, calls, uttered = [], [], Counter[str]()
            for place in range(call_count):
                said = [BACKCHANNELS[(place + turn) % len(BACKCHANNELS)] for turn in range(rounds)]
                uttered.update(said)
                sounds = [(words, await synthesize_mulaw(words)) for words in said]
                person = InterruptingCaller(deepgram, place, sounds, await synthesize_mulaw(INTERRUPTION))
                callers.append(person)
                caller = f"+1555011{place:04}"
                calls.append(asyncio.create_task(twilio.connect_person(caller, line.live.number, person.connect)))
                await eventually(deepgram.count_streams, lambda streams: streams > len(callers) - 1)
            await asyncio.gather(*calls)
            entries = await _list_caller_entries(line.live)
    assert uttered.keys() == set(BACKCHANNELS)
    heard = Counter(entry["content"] for entry in entries if entry["backchannel"])
    assert not uttered - heard
    assert {entry["content"] for entry in entries if not entry["backchannel"]} == {INTERRUPTION}
    delays = [delay for person in callers for delay in person.delays]
    assert len(delays) == call_count * rounds
    # A busy machine delays a part of them. On the virtual clock of the engine's tests there is no delay.
    assert median(delays) < STOP_SECONDS


async def _list_caller_entries(live: LivePlatform) -> list[dict[str, Any]]:
    """Return what the callers of all calls said, once the calls are over."""
    items: Any = (await live.caller.get("/v1/calls?limit=100")).json["items"]
    entries: list[dict[str, Any]] = []
    for call in items:
        await live.wait_for_end(call["id"])
        transcript: Any = (await live.caller.get(f"/v1/calls/{call['id']}/transcript")).json["items"]
        entries += [entry for entry in transcript if entry["role"] == "user"]
    return entries
