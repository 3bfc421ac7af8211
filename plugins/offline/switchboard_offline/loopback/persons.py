"""Simulated people behind phone numbers.

For numbers that begin with +1555, the last two digits decide the result of a call (see the plugin's README).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from switchboard.plugin_sdk import INVALID_NUMBER, CallProgress, ProviderError, encode_audio, transcode_audio
from switchboard.plugin_sdk.telephony_events import CallOutcome

from switchboard_offline.espeak import speak_text
from switchboard_offline.loopback.phone import Phone

Person: TypeAlias = Callable[[Phone], Awaitable[None]]

GREETING_SECONDS: Final = 3.0
"""A person who hears nothing for this long speaks first."""
ANSWER_SECONDS: Final = 20.0
"""Time for which a person waits for a reply."""
FRIENDLY: Final = ("Hello, who is speaking please?", "Thank you, that is all. Goodbye.")
VOICEMAIL: Final = "You have reached my voicemail. Please leave a message after the tone."
VOICE: Final = "en-us+michel"
"""A voice of eSpeak without flutter, so that a text sounds the same in each call and tests of an agent repeat."""
RING_TONE: Final = encode_audio(
    sum((3000 * np.sin(2 * np.pi * pitch * np.arange(8000) / 8000) for pitch in (440, 480)), np.zeros(8000)).astype(
        np.int16
    ),
    "mulaw",
)
"""One second of the North American ring tone; silence follows for `RING_TONE_PAUSE` seconds."""
RING_TONE_PAUSE: Final = 3.0
_TONE: Final = encode_audio((8000 * np.sin(2 * np.pi * 1000 * np.arange(4000) / 8000)).astype(np.int16), "mulaw")


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Behavior behind a number: `outcome` if nobody answers, else `person`."""

    person: Person
    outcome: CallOutcome | None = None
    error_message: str | None = None
    error_code: str | None = None
    machine: bool = False
    is_client: bool = False
    """A real person at a browser, who presses keys themselves."""


async def synthesize_mulaw(text: str) -> bytes:
    """Synthesize a text as mu-law audio."""
    pcm = await asyncio.to_thread(speak_text, text, voice=VOICE, sample_rate=8000)
    return transcode_audio(pcm, "pcm16", "mulaw")


def create_talker(lines: Sequence[bytes | str], tell: Callable[[CallProgress], None] = lambda _: None) -> Person:
    """Return a person who speaks each line, or presses its keys, when the other side stops talking, waits for the last
    reply, and hangs up.
    """

    async def talk(phone: Phone) -> None:
        wait_seconds = GREETING_SECONDS
        for number, line in enumerate(lines, start=1):
            if await phone.wait_for_voice(wait_seconds):
                tell(CallProgress("agent_speaking"))
                await phone.wait_for_pause()
            if isinstance(line, str):
                phone.press(line)
            else:
                await phone.say(line)
            tell(CallProgress("said", line=number))
            wait_seconds = ANSWER_SECONDS
        if await phone.wait_for_voice(wait_seconds):
            tell(CallProgress("agent_speaking"))
            await phone.wait_for_pause()

    return talk


async def _read(phone: Phone, texts: Sequence[str]) -> None:
    await create_talker([await synthesize_mulaw(text) for text in texts])(phone)


async def _leave_while_speaking(phone: Phone, texts: Sequence[str]) -> None:
    audio = await synthesize_mulaw(texts[0])
    await phone.listen(GREETING_SECONDS)
    await phone.say(audio[: len(audio) // 2])


async def _interrupt(phone: Phone, texts: Sequence[str]) -> None:
    for audio in [await synthesize_mulaw(text) for text in texts]:
        if await phone.wait_for_voice(ANSWER_SECONDS):
            await phone.wait(1.0)
        await phone.say(audio)
    await phone.listen(ANSWER_SECONDS)


async def _play_voicemail(phone: Phone) -> None:
    await phone.say(await synthesize_mulaw(VOICEMAIL))
    await phone.say(_TONE)
    phone.machine_beeped()
    await phone.listen(ANSWER_SECONDS)


async def _leave_while_listening(phone: Phone) -> None:
    await phone.wait_for_voice(ANSWER_SECONDS)
    await phone.wait(1.0)


async def _press_digits(phone: Phone) -> None:
    await phone.listen(GREETING_SECONDS)
    phone.press("123#")
    await phone.listen(ANSWER_SECONDS)


async def _stay_silent(phone: Phone) -> None:
    await asyncio.Event().wait()


class Directory:
    """Finds the subscriber of a number. `people` maps numbers to the lines that their person speaks."""

    def __init__(self, people: Mapping[str, Sequence[str]]) -> None:
        self._people = people

    def subscriber(self, number: str) -> Subscriber:
        """Return the subscriber of a number. Raises `ProviderError` for a number that the carrier refuses to dial."""
        texts = self._people.get(number) or FRIENDLY
        last = read_ending(number)
        if last == "24":
            raise ProviderError(f"the carrier does not dial {number}", code="destination_refused", retryable=False)
        if last == "25":
            raise ProviderError(f"there is no number {number}", code=INVALID_NUMBER, retryable=False)
        if last in _UNREACHED:
            return _UNREACHED[last]
        if last in _WORDLESS:
            return Subscriber(_WORDLESS[last], machine=last == "30")
        return Subscriber(partial(_SPEAKING.get(last, _read), texts=texts))


_UNREACHED: Final = {
    "20": Subscriber(_stay_silent, "busy"),
    "21": Subscriber(_stay_silent, "no-answer"),
    "22": Subscriber(_stay_silent, "failed", "the number is not in service", "404"),
    "23": Subscriber(_stay_silent, "failed", "the person declined the call", "603"),
}
_WORDLESS: Final[Mapping[str, Person]] = {
    "30": _play_voicemail,
    "40": _leave_while_listening,
    "50": _press_digits,
    "70": _stay_silent,
}
_SPEAKING: Final = {"41": _leave_while_speaking, "60": _interrupt}


def read_ending(number: str) -> str:
    """Return the two deciding digits of a number; empty for a number outside +1555."""
    return number[-2:] if number.startswith("+1555") else ""
