"""The people at the other end. What somebody does hangs on the last two digits of their number:

00-49 answer and hold the conversation that the provider's `people` setting gives them (else a friendly one); 50 is busy; 51 does not
answer; 52 fails at the carrier; 53 rejects the call; 54 is a voicemail with greeting and beep; 55 hangs up in mid-sentence; 56 presses 1, 2, 3
and #; 57 talks over the agent; 58 stays silent; 59 asks for a person. Others answer like 00-49. A text to 60 is never delivered.
"""

import asyncio
import wave
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import soxr
from switchboard.plugins import ProviderError

from switchboard_offline.espeak import speak
from switchboard_offline.loopback.g711 import encode
from switchboard_offline.loopback.line import Line

Answer = Literal["answers", "busy", "no-answer", "fails", "rejects"]
RATE = 8000
PAUSE_SECONDS = 0.7
PATIENCE_SECONDS = 20.0
FRIENDLY = ("Hello?", "Yes", "Thank you", "Goodbye")
LEVEL = 0.5
"""Of espeak's: a voice on the phone lies near -20 dBFS."""

Behaviour = Callable[[Line], Coroutine[None, None, None]]


@dataclass(frozen=True, slots=True)
class Person:
    """Whether somebody answers, what they then do, and whether they are a machine."""

    answer: Answer
    behave: Behaviour
    machine: bool = False


def spoken(text: str) -> bytes:
    """A line in a person's voice, mu-law."""
    samples = np.frombuffer(speak(text, sample_rate=RATE), dtype="<i2") * LEVEL
    return encode(samples.astype("<i2").tobytes())


def from_wav(path: Path) -> bytes:
    """A line from a 16-bit WAV file of any rate, mu-law. Raises `ProviderError` for a file that is none."""
    try:
        with wave.open(str(path), "rb") as file:
            if file.getsampwidth() != 2:
                raise ProviderError(f"{path} is not 16-bit PCM", retryable=False)
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, file.getnchannels())
            mono = samples.mean(axis=1).astype(np.int16)
            return encode(np.asarray(soxr.resample(mono, file.getframerate(), RATE), dtype="<i2").tobytes())
    except (OSError, EOFError, wave.Error) as error:
        raise ProviderError(f"{path} cannot be read as a WAV file: {error}", retryable=False) from None


def beep() -> bytes:
    """A voicemail's tone."""
    moments = np.arange(RATE // 2) / RATE
    return encode((np.sin(2 * np.pi * 1000 * moments) * 8000).astype("<i2").tobytes())


async def _converse(line: Line, lines: Sequence[str]) -> None:
    for text in lines:
        audio = await asyncio.to_thread(spoken, text)
        await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)
        line.voiced_at = None
        await line.say(audio)
    await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)


def _talker(lines: Sequence[str]) -> Behaviour:
    async def behave(line: Line) -> None:
        first = await asyncio.to_thread(spoken, lines[0])
        await line.say(first)
        await _converse(line, lines[1:])

    return behave


async def _voicemail(line: Line) -> None:
    greeting = await asyncio.to_thread(spoken, "I am not at home. Please leave a message after the tone.")
    await line.say(greeting + beep())
    await _hold(line)


async def _hang_up_in_mid_sentence(line: Line) -> None:
    audio = await asyncio.to_thread(spoken, "Hello, I was just about to tell you that")
    await line.say(audio[: len(audio) // 2])


async def _press_digits(line: Line) -> None:
    await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)
    line.voiced_at = None
    for digit in "123#":
        await line.press(digit)
        await line.say(b"\xff" * (RATE // 10))
    await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)


async def _talk_over(line: Line) -> None:
    """Breaks in half a second after the agent has begun."""
    audio = await asyncio.to_thread(spoken, "Can I speak to a human")
    moment = line.voiced_at or 0.0
    await line.voiced_since(moment, at_most=PATIENCE_SECONDS)
    await line.say(b"\xff" * (RATE // 2) + audio)
    await line.quiet(PAUSE_SECONDS, at_most=PATIENCE_SECONDS)
    await _converse(line, ("Goodbye",))


async def _hold(line: Line) -> None:
    await line.over.wait()


def person(number: str, scripts: Mapping[str, Sequence[str]]) -> Person:
    """Who is at a number."""
    special: dict[str, Person] = {
        "50": Person("busy", _hold),
        "51": Person("no-answer", _hold),
        "52": Person("fails", _hold),
        "53": Person("rejects", _hold),
        "54": Person("answers", _voicemail, machine=True),
        "55": Person("answers", _hang_up_in_mid_sentence),
        "56": Person("answers", _press_digits),
        "57": Person("answers", _talk_over),
        "58": Person("answers", _hold),
        "59": Person("answers", _talker(("Hello?", "Can I speak to a human", "Thank you"))),
    }
    if number in scripts:
        return Person("answers", _talker(scripts[number] or FRIENDLY))
    return special.get(number[-2:], Person("answers", _talker(FRIENDLY)))
