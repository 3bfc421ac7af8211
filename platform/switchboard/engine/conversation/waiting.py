"""The wait of a caller for a person: hold music, announcements of the position, and the offer of a callback.

The agent is silent meanwhile. The wait ends when a supervisor takes the call over, when the caller asks for a callback,
or after the agent's `queue_wait_seconds`.
"""

import asyncio
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from switchboard.engine.conversation.call import PersonQueue, SessionContext
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.response_generator import ResponseGenerator
from switchboard.engine.conversation.speech.speech_output import SpeechOutput
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import encode_audio

# Music for callers who wait: a slow arpeggio, rendered once for each encoding.

RATE, NOTE_SECONDS, LEVEL = 8000, 0.5, 3500
CHORDS = ((262, 330, 392, 523), (220, 262, 330, 440), (175, 220, 262, 349), (196, 247, 294, 392))


@cache
def render_hold_music(encoding: Encoding) -> bytes:
    """Render 16 seconds of music, which can be repeated without a gap, as 8 kHz G.711."""
    notes = [chord[step] for chord in CHORDS for step in (0, 1, 2, 3, 2, 1, 2, 3)]
    return encode_audio(np.concatenate([_render_note(hertz) for hertz in notes]), encoding)


def _render_note(hertz: int) -> npt.NDArray[np.int16]:
    moments = np.arange(int(NOTE_SECONDS * RATE)) / RATE
    loudness = np.minimum(1, moments / 0.03) * np.minimum(1, (NOTE_SECONDS - moments) / 0.15) * np.exp(-1.5 * moments)
    wave = np.sin(2 * np.pi * hertz * moments) + 0.3 * np.sin(4 * np.pi * hertz * moments)
    return np.asarray(wave * loudness * LEVEL, dtype=np.int16)


ANNOUNCEMENT_SECONDS: Final = 10.0
"""Interval between two looks at the position, which is said when it has changed."""
POLL_SECONDS: Final = 0.25
PIECE_BYTES: Final = 8000
CALLBACK_KEY: Final = "1"
CALLBACK_SECONDS: Final = 20.0
"""Time in which the user who calls back must speak."""

WAITING = "The caller waits for a person."
CALLBACK = "The caller asked for a callback."
UNANSWERED = "No person took the call in time."
CALLBACK_INSTRUCTION = (
    "The caller did not want to wait any longer. A callback to the number they call from has been noted: confirm it "
    "in one sentence. Then go on with the conversation, or end it."
)
UNANSWERED_INSTRUCTION = (
    "Nobody could take the call in time. Say so clearly, offer a callback or to take a message, and go on with the "
    "conversation yourself."
)
UNANSWERED_CALLBACK_INSTRUCTION = (
    "Nobody could take the call in time. Say so clearly, and that the caller will be called back at the number they "
    "call from, which has been noted."
)
NO_NUMBER_INSTRUCTION = "A callback cannot be noted, because the caller's number is withheld. Say so, and ask for one."


@cache
def _load_phrases() -> dict[str, dict[str, str | list[str]]]:
    return tomllib.loads((Path(__file__).parent / "waiting.toml").read_text())


class SilencedAgent(Protocol):
    """Part of the agent's turn taking that a wait uses."""

    transcript: CallTranscript
    generator: ResponseGenerator
    speech_output: SpeechOutput

    def silence_agent(self) -> None: ...
    def resume_agent(self) -> None: ...


class CallerWait:
    """Waits of one call for a person, one at a time."""

    def __init__(self, context: SessionContext, lifetime: CallLifetime, agent: SilencedAgent) -> None:
        self._context = context
        self._lifetime = lifetime
        self._agent = agent
        self._waiting: Waiting | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def in_progress(self) -> bool:
        """True while the caller waits."""
        return self._waiting is not None

    def start(self, queue: PersonQueue, reason: str) -> None:
        """Silence the agent and let the caller wait."""
        self._agent.silence_agent()
        self._agent.transcript.add("system", WAITING)
        self._waiting = Waiting(self._context, queue, self._agent.speech_output)
        self._task = self._lifetime.start(self._run, self._waiting, reason)

    def stop(self) -> None:
        """End the wait, because somebody else speaks, or the call ends."""
        if self._task is not None:
            self._task.cancel()
        self._waiting = self._task = None

    def handle_key(self, key: str) -> None:
        """Handle a key of the caller who waits."""
        if self._waiting is not None:
            self._waiting.handle_key(key)

    def handle_words(self, text: str) -> None:
        """Handle words of a caller who may be waiting."""
        if self._waiting is not None:
            self._waiting.handle_words(text)

    async def _run(self, waiting: "Waiting", reason: str) -> None:
        event, instruction = await waiting.run(reason)
        self._waiting = self._task = None
        self._agent.silence_agent()  # stops the music, too
        self._agent.transcript.add("system", event)
        self._agent.generator.add_instruction(instruction)
        self._agent.resume_agent()


class Waiting:
    """One wait. `run` returns the event for the transcript, and the instruction with which the agent goes on."""

    def __init__(self, context: SessionContext, queue: PersonQueue, speech_output: SpeechOutput) -> None:
        self._context = context
        self._queue = queue
        self._speech_output = speech_output
        self._asked_for_callback = False
        self._music = render_hold_music(context.encoding)
        self._played = 0
        self._announced, self._announce_at = 0, 0.0
        phrases = _load_phrases()
        self._phrases = phrases.get(context.call.agent.stt_language.partition("-")[0].lower(), phrases["en"])

    def handle_key(self, key: str) -> None:
        """Note a callback if the caller presses its key."""
        self._asked_for_callback = self._asked_for_callback or key == CALLBACK_KEY

    def handle_words(self, text: str) -> None:
        """Note a callback if the caller asks for one."""
        heard = " ".join(re.findall(r"[\w'-]+", text.lower()))
        if any(f" {words} " in f" {heard} " for words in self._phrases["words"]):
            self._asked_for_callback = True

    async def run(self, reason: str) -> tuple[str, str]:
        """Wait until a callback is asked for, or nobody has come in time."""
        call, settings = self._context.call, self._context.call.agent
        seconds = CALLBACK_SECONDS if call.begins_with_person else settings.queue_wait_seconds or 0
        ends_at = self._context.clock() + seconds
        await self._queue.join(reason)
        while self._context.clock() < ends_at and not self._asked_for_callback:
            if not call.begins_with_person and self._context.clock() >= self._announce_at:
                await self._announce(await self._queue.get_position())
            self._play_music()
            await asyncio.sleep(POLL_SECONDS)
        asked = self._asked_for_callback
        noted = await self._queue.leave(callback=asked or settings.queue_fallback == "callback")
        if asked:
            return CALLBACK, CALLBACK_INSTRUCTION if noted else NO_NUMBER_INSTRUCTION
        return UNANSWERED, UNANSWERED_CALLBACK_INSTRUCTION if noted else UNANSWERED_INSTRUCTION

    async def _announce(self, position: int) -> None:
        """Say the position, if it is new, once the music has ended, and wait until it has been heard."""
        if position != self._announced:
            self._announced = position
            text = f"{self._phrases['position']} {self._phrases['offer']}".format(position=position)
            await self._wait_for_silence()
            self._speech_output.say_only(text)
            await self._wait_for_silence()
        self._announce_at = self._context.clock() + ANNOUNCEMENT_SECONDS

    async def _wait_for_silence(self) -> None:
        output = self._speech_output
        while not self._asked_for_callback and (output.is_speaking() or output.reply):  # noqa: ASYNC110 - has no event
            await asyncio.sleep(POLL_SECONDS)

    def _play_music(self) -> None:
        playout = self._speech_output.playout
        while playout.count_pending(self._context.clock()) < PIECE_BYTES:
            start = self._played % len(self._music)
            playout.add(self._music[start : start + PIECE_BYTES])
            self._played += PIECE_BYTES
