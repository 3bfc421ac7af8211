"""Keys that the caller presses: arguments of tools, which no model sees, and turns of digits."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from switchboard.engine.conversation.call import Clock, LiveCall
from switchboard.engine.conversation.media.recording import Channel
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.plugin_sdk import KeypadEntry

DIGIT_IDLE_SECONDS = 2.0
FIRST_KEY_SECONDS: Final = 30.0
"""Time limit for the first key, from the beginning of the prompt."""
NEXT_KEY_SECONDS: Final = 5.0
"""Time limit between two keys, as in Twilio's <Gather>."""
TONE_SECONDS: Final = 1.0
"""Time around a key in which its tone may be heard: the carrier reports the key before or after its tone."""


class Keypad:
    """The keypad of one call.

    `entry_since` is the moment at which the open entry of a tool's arguments began, None while there is none. During
    an entry the recording is silent.
    """

    def __init__(self, call: LiveCall, transcript: CallTranscript, speech_output: SpeechOutput, clock: Clock) -> None:
        self._call = call
        self._transcript = transcript
        self._speech_output = speech_output
        self._clock = clock
        self._pressed = ""
        self._last_pressed_at = 0.0
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self.entry_since: float | None = None

    def press(self, key: str, now: float) -> str | None:
        """Handle a key; return the digits of the caller's turn if `#` completes it."""
        if self.entry_since is not None:
            self._keys.put_nowait(key)
            return None
        if self._call.agent.redactor.hides_keys:
            self._speech_output.playout.silence(Channel.CALLER, now - TONE_SECONDS, now + TONE_SECONDS)
        self._last_pressed_at = now
        if key == "#":
            return self._take_pressed()
        self._pressed += key
        return None

    def take_turn_if_idle(self, now: float) -> str | None:
        """Return the digits of the caller's turn if the caller has pressed no key for two seconds."""
        if not self._pressed or now - self._last_pressed_at < DIGIT_IDLE_SECONDS:
            return None
        return self._take_pressed()

    def _take_pressed(self) -> str:
        """Return the digits so far and clear them, so that they do not become a turn."""
        pressed, self._pressed = self._pressed, ""
        return pressed

    async def enter_digits(self, reply: SpokenReply, entries: Sequence[KeypadEntry]) -> Mapping[str, str] | None:
        """Ask for the arguments of a tool and return them by name; None if the caller does not enter one of them.

        The digits are redacted from now on, and so are all keys: the caller may be too slow for the entry.
        """
        self._call.agent.redactor.hide_keys()
        self.entry_since = self._clock()
        entered: dict[str, str] = {}
        for key in self._take_pressed():
            self._keys.put_nowait(key)
        try:
            for entry in entries:
                self._speech_output.say(reply, entry.prompt)
                digits = await self._collect(entry)
                if not digits:
                    return None
                entered[entry.parameter] = digits
                self._call.agent.redactor.add_secret(digits)
        finally:
            for channel in Channel:
                self._speech_output.playout.silence(channel, self.entry_since, self._clock() + TONE_SECONDS)
            self._transcript.add("user", self._call.agent.redactor.redact_keys("").kept, self.entry_since)
            self._keys, self.entry_since = asyncio.Queue(), None
        return entered

    async def _collect(self, entry: KeypadEntry) -> str:
        digits = ""
        while len(digits) < entry.max_digits:
            try:
                async with asyncio.timeout(NEXT_KEY_SECONDS if digits else FIRST_KEY_SECONDS):
                    key = await self._keys.get()
            except TimeoutError:
                break
            if key == "#":
                break
            digits = "" if key == "*" else digits + key
        return digits
