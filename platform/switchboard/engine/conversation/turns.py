"""Rules of turn taking: how long silence may last, when pressed digits are a turn, and fixed sentences of the agent."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from switchboard.engine.conversation.call import Clock, EndedReason, LiveCall
from switchboard.engine.conversation.media.recording import Channel
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.engine.redaction.redactor import RedactedText, Redactor
from switchboard.plugin_sdk import Encoding, KeypadEntry
from switchboard.plugin_sdk.audio import encode_audio

# The answering machine: its default greeting, its beep, and the limits of a message.

DEFAULT_GREETING = "We cannot take your call at the moment. Please leave a message after the tone."
SILENCE_SECONDS = 6.0
MAX_SECONDS = 120.0
BEEP_SECONDS, BEEP_HERTZ, BEEP_LEVEL = 0.4, 1000, 8000


def render_beep(encoding: Encoding) -> bytes:
    """Render the beep after which the caller speaks, as 8 kHz G.711."""
    moments = np.arange(int(BEEP_SECONDS * 8000)) / 8000
    return encode_audio((np.sin(2 * np.pi * BEEP_HERTZ * moments) * BEEP_LEVEL).astype(np.int16), encoding)


DIGIT_IDLE_SECONDS = 2.0


class CallTimeouts:
    """Limits on a call's silence and length, in seconds of the engine's clock."""

    def __init__(self, call: LiveCall, started_at: float) -> None:
        agent, records = call.agent, call.voicemail
        self._silence_seconds = SILENCE_SECONDS if records else agent.end_call_silence_seconds
        self._max_end = started_at + (MAX_SECONDS if records else agent.max_call_duration_seconds)
        self._last_activity_at = started_at

    def touch(self, now: float) -> None:
        """Restart the silence timeout."""
        self._last_activity_at = now

    def check(self, now: float) -> EndedReason | None:
        """Return the reason to end the call if a limit is exceeded."""
        if now >= self._max_end:
            return EndedReason.MAX_DURATION
        return EndedReason.SILENCE if now - self._last_activity_at >= self._silence_seconds else None


class DigitCollector:
    """Collects the keys that the caller presses into one turn, which `#` or two seconds without a key complete."""

    def __init__(self) -> None:
        self._pressed = ""
        self._last_pressed_at = 0.0

    def add_digit(self, digit: str, now: float) -> str | None:
        """Add a key; return the digits if it completes them."""
        self._last_pressed_at = now
        if digit != "#":
            self._pressed += digit
            return None
        return self.take_pressed()

    def take_if_idle(self, now: float) -> str | None:
        """Return the digits if the caller has stopped pressing keys."""
        return self.take_pressed() if self._pressed and now - self._last_pressed_at >= DIGIT_IDLE_SECONDS else None

    def take_pressed(self) -> str:
        """Return the digits so far and clear them, so that they do not become a turn."""
        pressed, self._pressed = self._pressed, ""
        return pressed


# The agent's last sentence in a call that ends because the process stops.

FAREWELLS = {
    "de": "Wir müssen dieses Gespräch leider wegen Wartungsarbeiten beenden. Bitte rufen Sie gleich noch einmal an.",
    "en": "I am sorry, we have to end this call for maintenance. Please call again in a moment.",
    "es": "Lo siento, tenemos que terminar esta llamada por mantenimiento. Llame de nuevo en un momento, por favor.",
    "fr": "Je suis désolé, nous devons terminer cet appel pour maintenance. Veuillez rappeler dans un instant.",
    "it": "Mi dispiace, dobbiamo terminare la chiamata per manutenzione. La preghiamo di richiamare tra un attimo.",
    "nl": "Het spijt me, we moeten dit gesprek beëindigen voor onderhoud. Belt u zo meteen nog een keer.",
    "pt": "Lamento, temos de terminar esta chamada para manutenção. Por favor, ligue novamente dentro de momentos.",
}
FAREWELL_SECONDS = 10.0
"""Time after which the call ends, whatever has been heard."""


def get_farewell(language: str) -> str:
    """Return the sentence in a language (BCP 47), or in English."""
    return FAREWELLS.get(language.partition("-")[0].lower(), FAREWELLS["en"])


# Keys that the caller presses: arguments of tools, which no model sees, and turns of digits.

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

    def __init__(
        self, redactor: Redactor, transcript: CallTranscript, speech_output: SpeechOutput, clock: Clock
    ) -> None:
        self._redactor = redactor
        self._transcript = transcript
        self._speech_output = speech_output
        self._clock = clock
        self._turn = DigitCollector()
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self.entry_since: float | None = None

    def press(self, key: str, now: float) -> RedactedText | None:
        """Handle a key; return the caller's turn of digits if the key completes one."""
        if self.entry_since is not None:
            self._keys.put_nowait(key)
            return None
        if self._redactor.hides_keys:
            self._speech_output.playout.silence(Channel.CALLER, now - TONE_SECONDS, now + TONE_SECONDS)
        digits = self._turn.add_digit(key, now)
        return None if digits is None else self._redactor.redact_keys(digits)

    def take_turn_if_idle(self, now: float) -> RedactedText | None:
        """Return the caller's turn of digits if the caller has stopped pressing keys."""
        digits = self._turn.take_if_idle(now)
        return None if digits is None else self._redactor.redact_keys(digits)

    async def enter_digits(self, reply: SpokenReply, entries: Sequence[KeypadEntry]) -> Mapping[str, str] | None:
        """Ask for the arguments of a tool and return them by name; None if the caller does not enter one of them.

        The digits are redacted from now on, and so are all keys: the caller may be too slow for the entry.
        """
        self._redactor.hide_keys()
        self.entry_since = self._clock()
        entered: dict[str, str] = {}
        for key in self._turn.take_pressed():
            self._keys.put_nowait(key)
        try:
            for entry in entries:
                self._speech_output.say(reply, entry.prompt)
                digits = await self._collect(entry)
                if not digits:
                    return None
                entered[entry.parameter] = digits
                self._redactor.add_secret(digits)
        finally:
            for channel in Channel:
                self._speech_output.playout.silence(channel, self.entry_since, self._clock() + TONE_SECONDS)
            self._transcript.add("user", self._redactor.redact_keys("").kept, self.entry_since)
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
