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

from switchboard.engine.conversation.call import PersonQueue, SessionContext
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.media.tones import render_hold_music
from switchboard.engine.conversation.response_generator import ResponseGenerator
from switchboard.engine.conversation.speech.speech_output import SpeechOutput
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.plugin_sdk.languages import get_base_language

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
    speech_output: SpeechOutput

    @property
    def generator(self) -> ResponseGenerator: ...
    def silence_agent(self) -> None: ...
    def resume_agent(self) -> None: ...


class CallerWait:
    """Waits of one call for a person, one at a time. It is `in_progress` while the caller waits."""

    def __init__(self, context: SessionContext, lifetime: CallLifetime, agent: SilencedAgent) -> None:
        self._context = context
        self._lifetime = lifetime
        self._agent = agent
        self._task: asyncio.Task[None] | None = None
        self._asked_for_callback = False
        self._played = 0
        self._announced, self._announce_at = 0, 0.0
        self.in_progress = False

    @property
    def _phrases(self) -> dict[str, str | list[str]]:
        phrases = _load_phrases()
        return phrases.get(get_base_language(self._context.call.agent.settings.stt_language), phrases["en"])

    def start(self, queue: PersonQueue, reason: str) -> None:
        """Silence the agent and let the caller wait."""
        self._agent.silence_agent()
        self._agent.transcript.add("system", WAITING)
        self.in_progress, self._asked_for_callback, self._played = True, False, 0
        self._announced, self._announce_at = 0, 0.0
        self._task = self._lifetime.start(self._run, queue, reason)

    def stop(self) -> None:
        """End the wait, because somebody else speaks, or the call ends."""
        if self._task is not None:
            self._task.cancel()
        self.in_progress, self._task = False, None

    def handle_key(self, key: str) -> None:
        """Note a callback if the caller who waits presses its key."""
        self._asked_for_callback = self._asked_for_callback or key == CALLBACK_KEY

    def handle_words(self, text: str) -> None:
        """Note a callback if the caller, who may be waiting, asks for one."""
        heard = " ".join(re.findall(r"[\w'-]+", text.lower()))
        if self.in_progress and any(f" {words} " in f" {heard} " for words in self._phrases["words"]):
            self._asked_for_callback = True

    async def _run(self, queue: PersonQueue, reason: str) -> None:
        event, instruction = await self._wait(queue, reason)
        self.in_progress, self._task = False, None
        self._agent.silence_agent()  # stops the music, too
        self._agent.transcript.add("system", event)
        self._agent.generator.add_instruction(instruction)
        self._agent.resume_agent()

    async def _wait(self, queue: PersonQueue, reason: str) -> tuple[str, str]:
        """Wait until a callback is asked for, or nobody has come in time. Return the event for the transcript, and the
        instruction with which the agent goes on.
        """
        call, settings = self._context.call, self._context.call.agent.settings
        seconds = CALLBACK_SECONDS if call.begins_with_person else settings.queue_wait_seconds or 0
        ends_at = self._context.clock() + seconds
        await queue.join(reason)
        while self._context.clock() < ends_at and not self._asked_for_callback:
            if not call.begins_with_person and self._context.clock() >= self._announce_at:
                await self._announce(await queue.get_position())
            self._play_music()
            await asyncio.sleep(POLL_SECONDS)
        asked = self._asked_for_callback
        noted = await queue.leave(callback=asked or settings.queue_fallback == "callback")
        if asked:
            return CALLBACK, CALLBACK_INSTRUCTION if noted else NO_NUMBER_INSTRUCTION
        return UNANSWERED, UNANSWERED_CALLBACK_INSTRUCTION if noted else UNANSWERED_INSTRUCTION

    async def _announce(self, position: int) -> None:
        """Say the position, if it is new, once the music has ended, and wait until it has been heard."""
        if position != self._announced:
            self._announced = position
            text = f"{self._phrases['position']} {self._phrases['offer']}".format(position=position)
            await self._wait_for_silence()
            self._agent.speech_output.say_only(text)
            await self._wait_for_silence()
        self._announce_at = self._context.clock() + ANNOUNCEMENT_SECONDS

    async def _wait_for_silence(self) -> None:
        output = self._agent.speech_output
        while not self._asked_for_callback and (output.is_speaking() or output.reply):  # noqa: ASYNC110 - has no event
            await asyncio.sleep(POLL_SECONDS)

    def _play_music(self) -> None:
        playout, music = self._agent.speech_output.playout, render_hold_music(self._context.encoding)
        while playout.count_pending(self._context.clock()) < PIECE_BYTES:
            start = self._played % len(music)
            playout.add(music[start : start + PIECE_BYTES])
            self._played += PIECE_BYTES
