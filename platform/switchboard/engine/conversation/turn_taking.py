"""Turn taking of a call: what the caller's words, keys and interruptions make the agent do."""

import asyncio
from typing import Literal, TypeAlias

from switchboard.engine.conversation import voicemail
from switchboard.engine.conversation.call import EndedReason, SessionContext, Tool
from switchboard.engine.conversation.farewell import get_farewell
from switchboard.engine.conversation.keypad import Keypad
from switchboard.engine.conversation.knowledge import SearchKnowledge, warm_up
from switchboard.engine.conversation.latency import TurnClock
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.media.dtmf import render_tones
from switchboard.engine.conversation.media.playout import MAX_LEAD_SECONDS
from switchboard.engine.conversation.media.stereo_mixer import Channel
from switchboard.engine.conversation.model_numbers import ModelNumbers
from switchboard.engine.conversation.response_generator import ResponseGenerator, fill_placeholders
from switchboard.engine.conversation.speech.detection import BatchedDetection
from switchboard.engine.conversation.speech.speech_input import SpeechInput
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply
from switchboard.engine.conversation.speech.vad import STOP_SECONDS
from switchboard.engine.conversation.tools import AgentRequests, EndCall, PressDigits, TransferCall
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.engine.conversation.transfer import Transfer, TransferRequest
from switchboard.engine.conversation.turns import CallTimeouts, is_interruption
from switchboard.engine.redaction.redactor import RedactedText
from switchboard.plugin_sdk import ProviderError

AgentState: TypeAlias = Literal["listening", "thinking", "speaking", "silent"]
NOTHING_SAID = RedactedText("", "")


class TurnTaking:
    """The conversation between caller and agent: it handles the events of speech input, speech output and tools.

    While the agent is silenced, because a supervisor has the call, the caller's turns are recorded and not answered.
    """

    def __init__(
        self, context: SessionContext, lifetime: CallLifetime, transfer: Transfer, detection: BatchedDetection
    ) -> None:
        call, clock = context.call, context.clock
        self._context = context
        self._lifetime = lifetime
        self._transfer = transfer
        self._requests = AgentRequests()
        self._silenced = False
        self._turn_count = 0
        self._answering: asyncio.Task[None] | None = None
        self._held_back = NOTHING_SAID
        self._last_reason: EndedReason | None = None
        started_at, agent = context.socket.opened_at, call.agent
        self._timeouts = CallTimeouts(
            started_at,
            silence_seconds=voicemail.SILENCE_SECONDS if call.voicemail else agent.end_call_silence_seconds,
            max_seconds=voicemail.MAX_SECONDS if call.voicemail else agent.max_call_duration_seconds,
        )
        self.transcript = CallTranscript(call, started_at, clock)
        self.speech_input = SpeechInput(call, context.encoding, clock, self, detection.schedule)
        self.speech_output = SpeechOutput(call, context.socket, context.encoding, clock, self._handle_reply_ended)
        self.keypad = Keypad(call.redactor, self.transcript, self.speech_output, clock)
        self.generator = ResponseGenerator(
            call, self.speech_output, self._build_tools(), self.transcript.add_tool_use, self.keypad.enter_digits
        )

    def greet(self) -> None:
        """Speak the greeting and warm up the knowledge bases."""
        call = self._context.call
        if call.knowledge is not None:
            self._lifetime.start(warm_up, call.knowledge)
        text = fill_placeholders(call.agent.greeting_message, call.variables)
        if call.voicemail:
            text = text or voicemail.DEFAULT_GREETING
        if text:
            self.speech_output.say_only(text)

    def say_farewell(self) -> None:
        """Speak the last sentence, which nothing interrupts; the call ends after it with the reason `shutdown`."""
        self.silence_agent()
        self._last_reason = EndedReason.SHUTDOWN
        self.speech_output.say_only(get_farewell(self._context.call.agent.stt_language))

    def stop(self) -> None:
        """Stop a reply that is being spoken, because the call is over."""
        if self.speech_output.reply is not None:
            self.speech_output.interrupt()

    def tick(self, now: float) -> None:
        """End replies, pauses and turns of digits that are over, and a call that exceeds its timeouts."""
        self.speech_output.playout.tick(now)
        self.speech_output.tick()
        self.speech_input.tick(now)
        if (digits := self.keypad.take_turn_if_idle(now)) is not None:
            self._take_digits(digits)
        if self.agent_state != "listening" or self.speech_input.activity.speaking or self._transfer.in_progress:
            self._timeouts.touch(now)
        if (reason := self._timeouts.check(now)) is not None:
            self._lifetime.end(EndedReason.VOICEMAIL if self._context.call.voicemail else reason)

    # --- the caller ---

    def handle_digit(self, digit: str) -> None:
        """Handle a key that the caller pressed."""
        now = self._context.clock()
        self._timeouts.touch(now)
        if (digits := self.keypad.press(digit, now)) is not None:
            self._take_digits(digits)

    def handle_speech_started(self) -> None:
        """Interrupt the agent, if the agent's settings let any speech do so."""
        self._timeouts.touch(self._context.clock())
        agent = self._context.call.agent
        if (
            agent.allow_interruptions
            and agent.interruption_min_words == 0
            and not self._context.call.voicemail
            and not self._silenced
            and self.keypad.entry_since is None
        ):
            self._interrupt()

    def handle_speech_stopped(self) -> None:
        """Retrieve knowledge: the words transcribed by now are probably all of them."""
        self._timeouts.touch(self._context.clock())
        self.generator.retrieval.prefetch(self._lifetime.start)

    def handle_transcript(self, text: str, finished: bool) -> None:
        """Interrupt the agent if the caller's words suffice, and take a turn once the utterance is finished."""
        self._timeouts.touch(self._context.clock())
        words = self._redact(text, finished)
        if self.keypad.entry_since is not None:
            return
        if self._silenced:
            if finished and text:
                self._take_turn(words)
            return
        busy = self.speech_output.is_speaking() or self._is_thinking()
        if text and busy and is_interruption(self._context.call.agent, text):
            self._interrupt()
            busy = False
        self.generator.retrieval.interim_transcript = "" if finished else words.for_model
        if not finished:
            if not self.speech_input.activity.speaking:
                self.generator.retrieval.prefetch(self._lifetime.start)
            return
        if not text:
            self._answer_unanswered()
        elif not busy:
            self._take_turn(words)
        elif not self._context.call.agent.allow_interruptions:
            self._held_back += words

    def _redact(self, text: str, finished: bool) -> RedactedText:
        """Redact the caller's words, in the recording too."""
        redactor, since = self._context.call.redactor, self.speech_input.unfinished_since
        words = redactor.redact_utterance(text) if finished else redactor.redact_interim(text)
        if words.is_redacted and since is not None:
            self.speech_output.playout.silence(Channel.CALLER, since, self._context.clock())
        return words

    def _take_digits(self, digits: RedactedText) -> None:
        self.speech_input.speech_started_at = self.speech_input.last_voice_at = self._context.clock()
        self._take_turn(digits)

    def _take_turn(self, words: RedactedText) -> None:
        self.transcript.add("user", words.kept, self.speech_input.speech_started_at)
        self.generator.add_caller_message(words.for_model)
        if not self._context.call.voicemail:
            self._answer()

    # --- the agent ---

    @property
    def agent_state(self) -> AgentState:
        """State of the agent at this moment."""
        if self._silenced:
            return "silent"
        return "speaking" if self.speech_output.is_speaking() else "thinking" if self._is_thinking() else "listening"

    def _is_thinking(self) -> bool:
        return self._answering is not None and not self._answering.done()

    def _answer(self) -> None:
        if self._silenced:
            return
        self._interrupt()
        self._turn_count += 1
        last_voice_at = self.speech_input.last_voice_at
        now = self._context.clock()
        turn = TurnClock(self._turn_count, last_voice_at, now=now, parent=self._context.trace)
        turn.record_step("endpoint", last_voice_at + STOP_SECONDS)
        turn.record_step("transcript", now)
        self._answering = self._lifetime.start(self.generator.generate, turn, self._context.clock)

    def _answer_unanswered(self) -> None:
        """Answer a turn whose answer was interrupted by noise before the agent could speak."""
        if (
            self.generator.history[-1].role == "user"
            and not self._is_thinking()
            and not self.speech_output.is_speaking()
            and not self._context.call.voicemail
        ):
            self._answer()

    def _interrupt(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None
        if self.speech_output.reply is not None:
            self._requests.hang_up, self._requests.transfer = False, None
            self.speech_output.interrupt()

    def _handle_reply_ended(self, reply: SpokenReply, heard: str, interrupted: bool) -> None:
        now = self._context.clock()
        self._timeouts.touch(now)
        said = " ".join(sentence.text for sentence in reply.sentences)
        if reply.started_at is not None and self._context.call.redactor.redact(said).is_redacted:
            # A carrier may return the last mark before the last audio was played.
            self.speech_output.playout.silence(Channel.AGENT, reply.started_at, now + MAX_LEAD_SECONDS)
        self._context.call.redactor.hear_agent(heard)
        if heard:
            self.transcript.add("agent", heard, reply.started_at, interrupted=interrupted)
        in_history = " ".join(sentence.text for sentence in reply.sentences[: reply.in_history])
        self.generator.add_agent_message(heard.removeprefix(in_history).strip())
        if reply.turn is not None:
            self.transcript.add_latency(reply.turn.build_latency())
            reply.turn.end(interrupted=interrupted)
        if not interrupted:
            self._follow_up()

    def _follow_up(self) -> None:
        """Carry out the request, or answer the words, that waited for the agent to finish speaking."""
        request, self._requests.transfer = self._requests.transfer, None
        if request is not None and not self._transfer.in_progress:
            self._lifetime.start(self._transfer_call, request)
        elif self._last_reason is not None:
            self._lifetime.end(self._last_reason)
        elif self._requests.hang_up:
            self._lifetime.end(EndedReason.AGENT_HUNG_UP)
        elif self._held_back.kept:
            words, self._held_back = self._held_back, NOTHING_SAID
            self._take_turn(words)
        elif self._context.call.voicemail and not self.transcript.has_role("user"):
            self.speech_output.playout.add(voicemail.render_beep(self._context.encoding))

    # --- the agent's tools ---

    def _build_tools(self) -> list[Tool]:
        call = self._context.call
        tools: list[Tool] = [
            EndCall(self._requests),
            TransferCall(self._requests, ModelNumbers.of(call.agent)),
            PressDigits(self._press_digits),
            *call.tools,
        ]
        return tools if call.knowledge is None else [*tools, SearchKnowledge(call.knowledge)]

    async def _transfer_call(self, request: TransferRequest) -> None:
        try:
            await self._transfer.execute(request)
        except ProviderError as error:
            self.generator.add_instruction(f"The transfer did not work: {error.message}. Tell the caller.")
            self._answer()
            return
        self._lifetime.end(EndedReason.TRANSFERRED)

    async def _press_digits(self, digits: str) -> None:
        if self._context.call.digits_as_tones:
            self.speech_output.playout.add(render_tones(digits, self._context.encoding))
        else:
            await self._context.call.leg.send_digits(digits)

    # --- a supervisor ---

    def find_takeover_obstacle(self) -> str | None:
        """Return why no supervisor can take the call over, or None if one can."""
        if self._lifetime.is_ending() or self._transfer.in_progress:
            return "The call is about to end."
        return "The call is recorded by the answering machine." if self._context.call.voicemail else None

    def silence_agent(self) -> None:
        """Stop the agent within its word, because a supervisor speaks from now on, and clear the carrier's buffer."""
        self._silenced = True
        self._interrupt()
        if self.speech_output.playout.is_playing(self._context.clock()):
            self.speech_output.playout.clear()
        words, self._held_back = self._held_back, NOTHING_SAID
        if words.kept:
            self._take_turn(words)

    def resume_agent(self) -> None:
        """Let the agent speak at once; if the caller is speaking, the agent answers them afterwards."""
        self._silenced = False
        if not self.speech_input.activity.speaking and self.speech_input.transcription.idle.is_set():
            self._answer()
