"""A call whose other party may be a machine: judge the answer, and leave the policy's message after the greeting."""

from typing import Final, Literal

import structlog

from switchboard.engine.conversation.call import EndedReason, MachineEvent, SessionContext
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.machine.detector import BEEP_SECONDS, Answer, AnswerDetector, judge_answer_words
from switchboard.engine.conversation.machine.tones import BeepDetector
from switchboard.engine.conversation.response_generator import fill_placeholders
from switchboard.engine.conversation.turn_taking import TurnTaking

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
        self._settings = call.voicemail_settings
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
        self._speech_input.observe_transcripts(self._handle_words)
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
            text = fill_placeholders(self._settings.message, self._context.call.variables)
            self._turns.say_last(text, EndedReason.VOICEMAIL)
        else:
            self._turns.answer_last(f"{WRITE_MESSAGE}{self._settings.prompt}", EndedReason.VOICEMAIL)
