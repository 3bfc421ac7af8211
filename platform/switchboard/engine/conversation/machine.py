"""A call whose other party may be a machine: judge the answer, and leave the policy's message after the greeting."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import structlog

from switchboard.engine.conversation.call import EndedReason, MachineEvent, SessionContext
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.turn_taking import TurnTaking
from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import decode_audio

# Recognition of the beep of an answering machine: a steady tone, as no voice is.

FRAME: Final = 160
"""Samples of 20 milliseconds at 8 kHz, so that a bin of the spectrum is 50 Hz wide."""
LOWEST, HIGHEST = 8, 44
"""Bins from 400 to 2200 Hz, which have the beeps of machines; hum and ringback (in part) are below."""
PURITY: Final = 0.9
"""Least share of a frame's energy in the tone's bin and its neighbors."""
QUIETEST: Final = 300.0
"""Least root mean square of a frame, of 32768: about -41 dBFS."""
FRAMES: Final = 10
"""Least length of a beep, in frames: 200 milliseconds. Vowels do not stay in one bin for so long."""


class BeepDetector:
    """Finds the end of a beep in the audio of one call."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._rest = b""
        self._bin = 0
        self._frames = 0
        self._window = np.hanning(FRAME)

    def has_heard_beep(self, audio: bytes) -> bool:
        """Take the next audio, and return whether a beep ended within it."""
        self._rest += audio
        ended = False
        while len(self._rest) >= FRAME:
            frame, self._rest = self._rest[:FRAME], self._rest[FRAME:]
            ended = self._add_frame(decode_audio(frame, self._encoding).astype(np.float64)) or ended
        return ended

    def _add_frame(self, samples: npt.NDArray[np.float64]) -> bool:
        tone = self._find_tone(samples)
        if tone is not None and (not self._frames or abs(tone - self._bin) <= 1):
            self._bin, self._frames = tone, self._frames + 1
            return False
        was_beep = self._frames >= FRAMES
        self._bin, self._frames = tone or 0, int(tone is not None)
        return was_beep

    def _find_tone(self, samples: npt.NDArray[np.float64]) -> int | None:
        """Return the bin of a pure tone; None if the frame has no pure tone."""
        if np.sqrt(np.mean(samples**2)) < QUIETEST:
            return None
        spectrum = np.abs(np.fft.rfft(samples * self._window)) ** 2
        peak = int(spectrum.argmax())
        if not LOWEST <= peak <= HIGHEST or spectrum[peak - 1 : peak + 2].sum() < PURITY * spectrum[1:].sum():
            return None
        return peak


# Judgment of an answer by its sound and its words: a person, a machine, or an assistant that screens the call.
#
# A person says a word or two and waits; a greeting goes on. So a long utterance without a pause is a machine's, and a
# short one, followed by a pause, a person's, as in Asterisk's AMD. Words that only greetings have decide at once, and
# so does a beep, also a while after a short greeting was taken for a person's. `make bench NAME=voicemail` measures it.

Answer: TypeAlias = Literal["human", "machine", "screening"]
LONGEST_HELLO: Final = 3.6
"""Seconds of speech, without a pause, that a person does not say before waiting for an answer."""
PAUSE: Final = 1.1
"""Seconds of silence after which a person waits. Greetings have pauses of half a second between their sentences."""
BEEP_SECONDS: Final = 15.0
"""Seconds after the answer for which a beep is a machine's."""
PATIENCE: Final = 12.0
"""Seconds after which an answer that says nothing is a person's."""
WORD: Final = re.compile(r"\w+")


class AnswerDetector:
    """Judges the answer of one call. Times are in seconds of the engine's clock."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._speech_since: float | None = None

    def hear_speech(self, now: float, speaking: bool, last_voice_at: float) -> Answer | None:
        """Judge the answer by the other party's voice and silence; return None as long as it may be either."""
        if self._speech_since is None:
            self._speech_since = now if speaking else None
            return "human" if not speaking and now - self._started_at > PATIENCE else None
        if speaking:
            return "machine" if now - self._speech_since > LONGEST_HELLO else None
        return "human" if now - last_voice_at > PAUSE else None


def judge_answer_words(text: str) -> Answer | None:
    """Judge words as they are transcribed; return None for words that a person and a machine may say."""
    spoken = " ".join(WORD.findall(text.lower().replace("\u2019", "'").replace("'", "")))
    phrases = _load_phrases()
    return next((answer for answer, known in phrases.items() if known.search(spoken)), None)


@cache
def _load_phrases() -> dict[Answer, re.Pattern[str]]:
    """Load the phrases of all languages, screening first: its words are more specific than those of greetings."""
    found: dict[str, list[str]] = tomllib.loads((files(__package__) / "machine.toml").read_text())
    return {
        answer: re.compile(rf"\b(?:{'|'.join(re.escape(phrase) for phrase in found[answer])})\b")
        for answer in ("screening", "machine")
    }


logger = structlog.get_logger()
GREETING_PAUSE: Final = 2.5
"""Seconds of silence that end a greeting without a beep: the pause before a beep is shorter."""
LONGEST_GREETING: Final = 60.0
SCREENED: Final = "An assistant of the callee screens the call. Say in one sentence who is calling and why; then wait."
WRITE_MESSAGE: Final = (
    "Voicemail has answered. Say the message that is to be recorded, and nothing else. It cannot be answered, so ask "
    "no question and use no tool. Instructions for the message: "
)


class MachineDialog:
    """The platform's side of a call that a machine may have answered.

    `found` is True once a machine has answered. The agent talks to everybody else, and to an assistant that screens
    calls.
    """

    def __init__(self, context: SessionContext, turns: TurnTaking, lifetime: CallLifetime) -> None:
        call, started_at = context.call, context.socket.opened_at
        self._context = context
        self._turns = turns
        self._speech_input = turns.speech_input
        self._lifetime = lifetime
        self._settings = call.voicemail_policy
        judges = call.judges_answer and self._settings.action != "off"
        self._detector = AnswerDetector(started_at) if judges else None
        self._beep_until = started_at + (BEEP_SECONDS if judges else 0.0)
        self._beeps = BeepDetector(context.encoding)
        self._state: Literal["talking", "waiting", "leaving"] = "talking"
        self._heard_beep = self._stopped = False
        self._since = started_at
        self.found = False

    def start(self) -> None:
        """Begin the call. A machine that the carrier has reported already is waited for."""
        self._speech_input.on_transcript = self._handle_words
        if self._context.call.machine_answered:
            self.handle_event(MachineEvent(greeting_over=False))

    def stop(self) -> None:
        """Leave the call to a supervisor, who hears who answered."""
        self._stopped = True

    def handle_event(self, event: MachineEvent) -> None:
        """Handle a machine that the carrier, or the call's audio, has recognized."""
        self._detector = None
        if self._stopped or self._settings.action == "off":
            return
        if self._settings.action == "hang_up":
            self.found = True
            self._lifetime.end(EndedReason.VOICEMAIL)
            return
        if not self.found:
            self.found, self._state, self._since = True, "waiting", self._context.clock()
            logger.info("voicemail answered", call_id=str(self._context.call.call_id))
            self._turns.silence_agent()
        if event.greeting_over:
            self._heard_beep = True
            self._leave_message()

    def add_audio(self, audio: bytes) -> None:
        """Listen for a beep, which also tells that a greeting went on after its message was begun."""
        may_be_beep = self._context.clock() < self._beep_until if self._state == "talking" else not self._heard_beep
        if may_be_beep and self._beeps.has_heard_beep(audio):
            self._state = "waiting" if self._state == "leaving" else self._state
            self.handle_event(MachineEvent(greeting_over=True))

    def tick(self, now: float) -> None:
        """Judge the answer by its pauses, and a greeting by its end."""
        if self._stopped:
            return
        speaking, last_voice_at = self._speech_input.activity.speaking, self._speech_input.last_voice_at
        if self._detector is not None:
            self._judge(self._detector.hear_speech(now, speaking, last_voice_at))
        elif self._state == "waiting":
            silent = not speaking and now - max(last_voice_at, self._since) > GREETING_PAUSE
            if silent or now - self._since > LONGEST_GREETING:
                self._leave_message()

    def _handle_words(self, text: str) -> None:
        if self._detector is not None:
            self._judge(judge_answer_words(text))

    def _judge(self, answer: Answer | None) -> None:
        if answer == "machine":
            self.handle_event(MachineEvent(greeting_over=False))
        elif answer is not None:
            self._detector = None
        if answer == "screening":
            self._turns.generator.add_instruction(SCREENED)

    def _leave_message(self) -> None:
        """Say the message; the call ends after it. A message that was begun before the beep begins again."""
        if self._state != "waiting":
            return
        self._state = "leaving"
        if self._settings.message:
            text = self._context.call.variables.fill(self._settings.message)
            self._turns.say_last(text, EndedReason.VOICEMAIL)
        else:
            self._turns.answer_last(f"{WRITE_MESSAGE}{self._settings.prompt}", EndedReason.VOICEMAIL)
