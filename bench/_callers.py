"""Callers who repeat a question over Twilio's wire format, and what they hear: for `bench/calls` and `bench/soak`.

A turn ends with the frame that completes the configured silence, which each platform's own detection finds beforehand
in the same audio.
"""

import asyncio
import base64
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import aiohttp
import numpy as np
from switchboard.engine.conversation.speech.vad import WINDOW, SpeechChange, VoiceActivity, VoiceDetector
from switchboard.plugin_sdk.audio import Samples, encode_audio
from switchboard_offline.espeak import speak_text

from bench._engine_calls import ReplyClock
from bench.vendors_server import Turn, Vendors

LEAD_SECONDS, PAUSE_SECONDS = 4.0, 3.5
FRAME, FRAME_SECONDS = 160, 0.02
SILENT: Final = 0xFF
QUIET: Final = 200


class Line(Protocol):
    """A server that takes calls, and its process."""

    @property
    def pid(self) -> int: ...

    async def open(self, number: int) -> aiohttp.ClientWebSocketResponse:
        """Announce a call and open its media socket. Raises `RuntimeError` if the call is refused."""


@dataclass(frozen=True, slots=True)
class Script:
    """Messages of a caller who repeats a question.

    `words` are the frames with each question's last sound, and `ends` the frames that end its turn.
    """

    frames: list[str]
    words: set[int]
    ends: set[int]

    @classmethod
    def build(cls, audio: bytes, words: Sequence[int], ends: Sequence[int]) -> "Script":
        pieces = (audio[at : at + FRAME] for at in range(0, len(audio), FRAME))
        payloads = (base64.b64encode(piece).decode() for piece in pieces)
        media = [json.dumps({"event": "media", "streamSid": "s", "media": {"payload": item}}) for item in payloads]
        return cls(media, set(words), set(ends))


@dataclass(slots=True)
class Caller:
    """One call: its turns, the lateness of the audio that it hears, and its own, each in milliseconds at a moment.

    `greeted_after` are the seconds from the carrier's callback to the first audio; `fault` says why the call failed.
    """

    number: int
    line: Line
    vendors: Vendors
    turns: list[Turn] = field(default_factory=list)
    lateness: list[tuple[float, float]] = field(default_factory=list)
    slips: list[tuple[float, float]] = field(default_factory=list)
    greeted_after: float = 0.0
    fault: str = ""

    async def call(self, script: Script) -> None:
        """Call, say the script, and hang up. Failures are recorded."""
        began = time.perf_counter()
        try:
            socket = await self.line.open(self.number)
        except (aiohttp.ClientError, RuntimeError) as error:
            self.fault = str(error) or repr(error)
            return
        listening = asyncio.create_task(self._listen(socket, began))
        try:
            await self._say(socket, script)
            await socket.send_json({"event": "stop", "streamSid": "s", "stop": {"accountSid": "a"}})
        except aiohttp.ClientError:
            self.fault = "the call was hung up"
        finally:
            listening.cancel()
            await socket.close()

    async def _say(self, socket: aiohttp.ClientWebSocketResponse, script: Script) -> None:
        due = time.perf_counter()
        for index, frame in enumerate(script.frames):
            due += FRAME_SECONDS
            await asyncio.sleep(due - time.perf_counter())
            moment = time.perf_counter()
            self.slips.append((moment, (moment - due) * 1000))
            if index in script.words:
                self.vendors.turns[self.number] = Turn(last_word=moment)
            if index in script.ends:
                self.vendors.turns[self.number].over = moment
                self.turns.append(self.vendors.turns[self.number])
            await socket.send_str(frame)

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse, began: float) -> None:
        reply = ReplyClock()
        async for message in socket:
            moment = time.perf_counter()
            if message.type is not aiohttp.WSMsgType.TEXT or '"media"' not in message.data:
                continue
            payload = json.loads(message.data)["media"]["payload"]
            self.lateness.append((moment, reply.measure_lateness(moment, len(payload) * 3 // 4)))
            self.greeted_after = self.greeted_after or moment - began
            turn = self.vendors.turns[self.number]
            if turn.tts_answered and not turn.heard:
                turn.record("heard")


@dataclass(frozen=True, slots=True)
class Heard:
    """Turns that ended within a window of time, and what was late in it, in milliseconds."""

    turns: list[Turn]
    asked: int
    failed: int
    lateness: list[float]
    slips: list[float]

    @classmethod
    def collect(cls, callers: Sequence[Caller], began: float, ended: float) -> "Heard":
        turns = [turn for caller in callers for turn in caller.turns if began <= turn.over < ended]
        late, slips = (
            [value for samples in columns for moment, value in samples if began <= moment < ended]
            for columns in ([caller.lateness for caller in callers], [caller.slips for caller in callers])
        )
        failed = sum(1 for caller in callers if caller.fault)
        return cls([turn for turn in turns if turn.is_answered], len(turns), failed, late, slips)


def build_caller_audio(seconds: float) -> tuple[bytes, list[int]]:
    """Return at least so many seconds of a caller's audio, and the frames with each question's last sound."""
    question = (np.frombuffer(speak_text("What are your opening hours?"), dtype="<i2") * 0.5).astype(np.int16)
    question = question[: int(np.nonzero(np.abs(question) > QUIET)[0][-1]) + 1]
    audio, words = bytearray([SILENT] * int(LEAD_SECONDS * 8000)), []
    while len(audio) < seconds * 8000:
        audio += encode_audio(question, "mulaw")
        words.append((len(audio) - 1) // FRAME)
        audio += bytes([SILENT]) * int(PAUSE_SECONDS * 8000)
    return bytes(audio[: len(audio) // FRAME * FRAME]), words


def build_silence(seconds: float) -> Script:
    """Build the messages of a caller who says nothing."""
    return Script.build(bytes([SILENT]) * (round(seconds / FRAME_SECONDS) * FRAME), (), ())


def find_turn_ends(samples: Samples) -> list[int]:
    """Return the frames that end a turn for the call engine."""
    detector, activity, ends = VoiceDetector(), VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6), []
    for at in range(0, len(samples) - WINDOW + 1, WINDOW):
        if detector.detect([activity], samples[None, at : at + WINDOW]) == [SpeechChange.STOPPED]:
            ends.append((at + WINDOW - 1) // FRAME)
    return ends
