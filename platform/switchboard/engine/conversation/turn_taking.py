"""Turn taking of a call: what the caller's words, keys and interruptions make the agent do."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, TypeAlias

from switchboard.engine.conversation.agent_settings import Guardrail, Handoff
from switchboard.engine.conversation.call import (
    CallAgent,
    EndedReason,
    Intervention,
    LiveCall,
    SessionContext,
    Tool,
)
from switchboard.engine.conversation.claims import Finding
from switchboard.engine.conversation.consent import REFUSED, ConsentDialog, ConsentHandler
from switchboard.engine.conversation.endpointing.policy import CallerTurn, Endpointing
from switchboard.engine.conversation.gate import describe
from switchboard.engine.conversation.guardrails import IGNORE_NOTE, NOBODY_NOTE, describe_guardrail
from switchboard.engine.conversation.handoff import AgentParts, PendingHandoff
from switchboard.engine.conversation.handoff_tools import FAILED_NOTE
from switchboard.engine.conversation.interruptions import Interruptions
from switchboard.engine.conversation.keypad import Keypad
from switchboard.engine.conversation.knowledge import warm_up
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.media.playout import MAX_LEAD_SECONDS
from switchboard.engine.conversation.media.recording import Channel
from switchboard.engine.conversation.media.tones import render_beep, render_tones
from switchboard.engine.conversation.response_generator import ResponseGenerator
from switchboard.engine.conversation.speech.speech_input import BatchedDetection, SpeechInput
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply, join_heard
from switchboard.engine.conversation.speech.transcription import TranscriptionStream
from switchboard.engine.conversation.speech.vad import STOP_SECONDS
from switchboard.engine.conversation.tools import AgentRequests, TransferTo, build_call_tools
from switchboard.engine.conversation.transcript import CallTranscript, TurnClock
from switchboard.engine.conversation.waiting import CallerWait
from switchboard.engine.disclosure.disclosure import Disclosure
from switchboard.engine.redaction.redactor import RedactedText
from switchboard.plugin_sdk import JsonObject, KeypadEntry, Message, ProviderError, ToolError
from switchboard.plugin_sdk.languages import get_base_language

AgentState: TypeAlias = Literal["listening", "thinking", "speaking", "silent"]

# The answering machine: its default greeting, and the limits of a message.

DEFAULT_GREETING = "We cannot take your call at the moment. Please leave a message after the tone."
SILENCE_SECONDS = 6.0
MAX_SECONDS = 120.0


class CallTimeouts:
    """Limits on a call's silence and length, in seconds of the engine's clock. The length is limited by the agent that
    the call begins with.
    """

    def __init__(self, call: LiveCall, started_at: float) -> None:
        self._call = call
        seconds = MAX_SECONDS if call.voicemail else call.agent.settings.max_call_duration_seconds
        self._max_end = started_at + seconds
        self._last_activity_at = started_at

    def touch(self, now: float) -> None:
        """Restart the silence timeout."""
        self._last_activity_at = now

    def check(self, now: float) -> EndedReason | None:
        """Return the reason to end the call if a limit is exceeded."""
        if now >= self._max_end:
            return EndedReason.MAX_DURATION
        patience = SILENCE_SECONDS if self._call.voicemail else self._call.agent.settings.end_call_silence_seconds
        return EndedReason.SILENCE if now - self._last_activity_at >= patience else None


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


class TurnTaking:
    """The conversation between caller and agent: it handles the events of speech input, speech output and tools.

    While the agent is silenced, because a supervisor has the call, the caller's turns are recorded and not answered.
    """

    def __init__(self, context: SessionContext, lifetime: CallLifetime, detection: BatchedDetection) -> None:
        call, clock = context.call, context.clock
        self._context = context
        self._lifetime = lifetime
        self._requests = AgentRequests()
        self._silenced = False
        self._answering: asyncio.Task[None] | None = None
        started_at = context.socket.opened_at
        self._timeouts = CallTimeouts(call, started_at)
        self.transcript = CallTranscript(call, started_at, clock)
        self.speech_input = SpeechInput(call, context.encoding, clock, self, detection.schedule)
        self.endpointing = Endpointing(call, self.speech_input, clock, lifetime, self)
        self.speech_input.streams.on_turn_report = self.endpointing.handle_turn_report
        self.speech_output = SpeechOutput(call, context.socket, context.encoding, clock, self._handle_reply_ended)
        self._interruptions = Interruptions(call, self.speech_output.playout, self.transcript, clock)
        self.keypad = Keypad(call, self.transcript, self.speech_output, clock)
        self._consent = (
            ConsentDialog(context, call.disclosure, self.speech_output, self.transcript) if call.disclosure else None
        )
        self._wait = CallerWait(context, lifetime, self)
        self.parts = AgentParts(call, lifetime, self)

    @property
    def generator(self) -> ResponseGenerator:
        """The generator of the agent that has the call."""
        return self.parts.current.generator

    def greet(self, handle_consent: ConsentHandler) -> None:
        """Open the call, with notice and question of consent if they are due, and warm up the knowledge bases."""
        self._warm_up()
        if self._consent is None:
            self._say_greeting()
        else:
            self._consent.start(self._lifetime, partial(self._handle_consent, self._consent.disclosure, handle_consent))

    def _handle_consent(self, disclosure: Disclosure, handle_consent: ConsentHandler, given: bool) -> None:
        self._consent = None
        if disclosure.consent != "none":
            handle_consent(given)
        if given:
            self._say_greeting()
            return
        self.generator.add_instruction(REFUSED)
        if disclosure.ends_without_consent:
            self.say_last(disclosure.texts.goodbye, EndedReason.NO_CONSENT)
        else:
            self._say_greeting(disclosure.texts.refused)

    def _warm_up(self) -> None:
        """Load what the agent may need soon: its knowledge, and the agents to which it may hand over."""
        if (knowledge := self._context.call.agent.knowledge) is not None:
            self._lifetime.start(warm_up, knowledge)
        if self._context.call.colleagues is not None:
            self._lifetime.start(self.parts.open_colleagues)

    def _say_greeting(self, before: str = "") -> None:
        call = self._context.call
        if call.begins_with_person and call.queue is not None:
            return self._wait.start(call.queue, "")
        if not before and (handoff := self.parts.find_forced({})) is not None:
            self._lifetime.start(self._force_handoff, handoff)
            return None
        text = "" if call.history else self._write_greeting()
        if call.voicemail:
            text = text or DEFAULT_GREETING
        if text or before:
            self.speech_output.say_only(" ".join(filter(None, (before, text))))
        else:
            self._follow_up()
        return None

    def _write_greeting(self) -> str:
        agent = self._context.call.agent
        greeting, redact = agent.settings.greeting_message, agent.redactor.redact
        return self._context.call.variables.fill(greeting, lambda value: redact(value).kept)

    def say_farewell(self) -> None:
        """Say that the process stops; the call ends after it with the reason `shutdown`."""
        language = get_base_language(self._context.call.agent.settings.stt_language)
        self.say_last(FAREWELLS.get(language, FAREWELLS["en"]), EndedReason.SHUTDOWN)

    def say_last(self, text: str, reason: EndedReason) -> None:
        """Speak the last sentence, which nothing interrupts; the call ends after it."""
        self.parts.drop()
        self.silence_agent()
        self._requests.ending = reason
        self.speech_output.say_only(text)

    def answer_last(self, instruction: str, reason: EndedReason) -> None:
        """Let the model say the last words by an instruction, as `say_last` says a text."""
        self.silence_agent()
        self.generator.add_instruction(instruction)
        self._silenced = False
        self._answer()
        self._silenced, self._requests.ending = True, reason

    def stop(self) -> None:
        """Stop a reply that is being spoken, because the call is over, and keep a turn that was not."""
        self._take_unfinished_turn()
        self.parts.drop()
        self.generator.preemptive.drop()
        if self.speech_output.reply is not None:
            self.speech_output.interrupt()
        self._interruptions.end_reply()

    def tick(self, now: float) -> None:
        """End replies, pauses and turns of digits that are over, and a call that exceeds its timeouts."""
        self.speech_output.playout.tick(now)
        self.speech_output.tick()
        self.speech_input.tick(now)
        self._interruptions.tick(now, may_hold=self._may_be_interrupted())
        self.endpointing.tick(now)
        if (digits := self.keypad.take_turn_if_idle(now)) is not None:
            self._take_digits(digits)
        is_busy = self.agent_state != "listening" or self.is_opening or self._lifetime.transfer.in_progress
        if is_busy or self.speech_input.activity.speaking or self.endpointing.words.kept:
            self._timeouts.touch(now)
        if (reason := self._timeouts.check(now)) is not None:
            self._lifetime.end(EndedReason.VOICEMAIL if self._context.call.voicemail else reason)

    # --- the caller ---

    def handle_digit(self, digit: str) -> None:
        """Handle a key that the caller pressed."""
        now = self._context.clock()
        self._timeouts.touch(now)
        if self._consent is not None:
            self._consent.handle_key(digit)
            return
        if self._wait.in_progress:
            self._wait.handle_key(digit)
            return
        if (digits := self.keypad.press(digit, now)) is not None:
            self._take_digits(digits)

    def handle_speech_started(self) -> None:
        """Interrupt the agent, if the agent's settings let any speech do so."""
        self._timeouts.touch(self._context.clock())
        self.endpointing.handle_speech_started(self.speech_input.speech_started_at)
        self._interruptions.handle_speech_started(self.speech_input.speech_started_at)
        if self._context.call.agent.settings.interruption_min_words == 0 and self._may_be_interrupted():
            self._interrupt()

    def _may_be_interrupted(self) -> bool:
        return (
            self._context.call.agent.settings.allow_interruptions
            and not self._context.call.voicemail
            and not self._silenced
            and not self.is_opening
            and self.keypad.entry_since is None
        )

    def handle_speech_stopped(self) -> None:
        """Retrieve knowledge: the words transcribed by now are probably all of them."""
        self._timeouts.touch(self._context.clock())
        self.endpointing.handle_speech_stopped(self.speech_input.last_voice_at)
        self._interruptions.handle_speech_stopped()
        self.generator.retrieval.prefetch(self._lifetime.start)

    def handle_transcript(self, text: str, finished: bool) -> None:
        """Interrupt the agent if the caller's words suffice, and take a turn once the utterance is finished."""
        self._timeouts.touch(self._context.clock())
        words = self._redact(text, finished)
        if self.keypad.entry_since is not None:
            return
        if self._silenced or self.is_opening:
            if finished and text:
                self._wait.handle_words(text)
                self._take_unanswered(words)
            return
        busy = self.speech_output.is_speaking() or self._is_thinking()
        if busy and self._interruptions.handle_words(text):
            self._interrupt()
            busy = False
        if not finished:
            if not busy:
                self._handle_interim(words, text)
            return
        self.generator.retrieval.interim_transcript = ""
        if not text and not self.endpointing.words.kept:
            self._answer_unanswered()
            return
        speech = self.speech_input
        if not busy:
            self.endpointing.add_words(words, text, speech.speech_started_at)
        else:
            self._interruptions.add_words(words, text, speech.speech_started_at, speech.last_voice_at)

    def _handle_interim(self, words: RedactedText, text: str) -> None:
        self.generator.retrieval.interim_transcript = (self.endpointing.words + words).for_model
        self.endpointing.handle_interim(words, text)
        if text:
            self.generator.preemptive.drop()
        if not self.speech_input.activity.speaking:
            self.generator.retrieval.prefetch(self._lifetime.start)

    def _take_unanswered(self, words: RedactedText) -> None:
        """Take words to a supervisor, or to the question of consent; words from before the question are answered after
        it.
        """
        if self._consent is None:
            self._take_turn(words)
            return
        since = self.speech_input.unfinished_since
        if not self._consent.handle_words(words, self.speech_input.speech_started_at if since is None else since):
            self._interruptions.held_back += words

    def _redact(self, text: str, finished: bool) -> RedactedText:
        """Redact the caller's words, in the recording too."""
        redactor, since = self._context.call.agent.redactor, self.speech_input.unfinished_since
        words = redactor.redact_utterance(text) if finished else redactor.redact_interim(text)
        if words.is_redacted and since is not None:
            self.speech_output.playout.silence(Channel.CALLER, since, self._context.clock())
        return words

    def _take_digits(self, digits: str) -> None:
        self._take_unfinished_turn()
        self.speech_input.speech_started_at = self.speech_input.last_voice_at = now = self._context.clock()
        words = self._context.call.agent.redactor.redact_keys(digits)
        if not self._silenced and (handoff := self.parts.find_forced({"keys": digits})) is not None:
            self._add_turn(CallerTurn(words, now, now))
            self._lifetime.start(self._force_handoff, handoff)
        else:
            self._take_turn(words)

    def _take_unfinished_turn(self) -> None:
        """Take the words of a turn that was not over, without answering them."""
        if (turn := self.endpointing.take_turn(self._context.clock())).words.kept:
            self._add_turn(turn)

    def _take_turn(self, words: RedactedText) -> None:
        self._add_turn(CallerTurn(words, self.speech_input.speech_started_at, self._context.clock()))
        if not self._context.call.voicemail:
            self._answer()

    def _add_turn(self, turn: CallerTurn) -> None:
        self.transcript.add_turn(turn.words.kept, turn.started_at, turn.pauses)
        if self._context.call.agent.settings.guardrails and not (self._silenced or self._context.call.voicemail):
            words, said = turn.words.for_model, self.get_agent_utterance()
            self._lifetime.start(self.generator.guard.watch, words, said, self._act_on)
        self.generator.history.append(Message("user", turn.words.for_model))

    async def _act_on(self, found: Guardrail) -> None:
        """Act on words that have met a guardrail, also if the agent has begun to answer them."""
        call = self._context.call
        self.transcript.add("system", describe_guardrail(found))
        at = self.transcript.entries[-1].timestamp_ms
        call.log.record_intervention(Intervention(found.watches, found.name, found.action, call.agent.id, at))
        self.generator.add_caution(IGNORE_NOTE.format(name=found.name))
        if self._silenced:
            return
        if found.action == "ignore":
            if self._is_thinking():  # without the caution, and perhaps about to use a tool
                self._answer()
            return
        if found.action == "end":
            self.say_last(found.text, EndedReason.AGENT_HUNG_UP)
            return
        self.parts.drop()
        self._interrupt()
        if found.action != "person":
            self.speech_output.say_only(found.text)
        elif call.queue is None or call.agent.settings.queue_wait_seconds is None or not await call.queue.is_staffed():
            self.generator.add_instruction(NOBODY_NOTE)
            self._answer()
        elif found.text:
            self._requests.person = found.name
            self.speech_output.say_only(found.text)
        else:
            self._wait.start(call.queue, found.name)

    # --- the ends of turns ---

    def get_agent_utterance(self) -> str:
        """Return what the agent said last."""
        return next(
            (message.content for message in reversed(self.generator.history) if message.role == "assistant"), ""
        )

    def handle_possible_end(self, words: RedactedText) -> None:
        """Ask the model already, and hold its answer until the turn is over."""
        if not self._context.call.voicemail and not self._silenced:
            self.generator.prepare(words.for_model, self._lifetime.start)

    def handle_turn_resumed(self) -> None:
        """Drop the answer that is held."""
        self.generator.preemptive.drop()

    def handle_turn_over(self, turn: CallerTurn) -> None:
        """Answer a finished turn."""
        self._add_turn(turn)
        if not self._context.call.voicemail:
            self._answer(turn.ended_at)

    # --- the agent ---

    @property
    def is_opening(self) -> bool:
        """True while the notice is spoken, and while the question of consent waits for its answer."""
        return self._consent is not None

    @property
    def agent_state(self) -> AgentState:
        """State of the agent at this moment."""
        if self._silenced:
            return "silent"
        return "speaking" if self.speech_output.is_speaking() else "thinking" if self._is_thinking() else "listening"

    def _is_thinking(self) -> bool:
        return self._answering is not None and not self._answering.done()

    def _answer(self, decided_at: float | None = None, *, waits_since: float | None = None) -> None:
        """Answer the caller; `decided_at` is the moment at which the turn was known to be over. A caller who waits for
        another agent `waits_since` the last words of the agent before it.
        """
        if self._silenced:
            return
        self._interrupt()
        last_voice_at = self.speech_input.last_voice_at if waits_since is None else waits_since
        now = self._context.clock()
        turn = TurnClock(next(self.transcript.turn_numbers), last_voice_at, now=now, parent=self._context.trace)
        if waits_since is None:
            turn.record_step("endpoint", last_voice_at + STOP_SECONDS if decided_at is None else decided_at)
            turn.record_step("transcript", now)
        self._answering = self._lifetime.start(self.generator.generate, turn, self._context.clock)

    def _answer_unanswered(self) -> None:
        """Answer a turn whose answer was interrupted, or kept from beginning, by noise before the agent could speak."""
        last = self.generator.history[-1]
        if (
            (last.role == "user" or last is self.parts.current.note)
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
            self._requests.ending = self._requests.transfer = self._requests.person = None
            self.speech_output.interrupt()

    def _handle_reply_ended(self, reply: SpokenReply, interrupted: bool) -> None:
        now, said, heard = self._context.clock(), reply.text, join_heard(reply.sentences)
        self._timeouts.touch(now)
        if reply.started_at is not None and self._context.call.agent.redactor.redact(said).is_redacted:
            # A carrier may return the last mark before the last audio was played.
            self.speech_output.playout.silence(Channel.AGENT, reply.started_at, now + MAX_LEAD_SECONDS)
        self._context.call.agent.redactor.hear_agent(heard)
        if heard:
            self.transcript.add("agent", heard, reply.started_at, interrupted=interrupted)
        self._interruptions.end_reply("" if interrupted else said)
        self.generator.record_heard(reply)
        if reply.turn is not None:
            self.transcript.add_latency(reply.turn.build_latency())
            reply.turn.end(interrupted=interrupted)
        if (pending := self.parts.take_pending()) is not None:
            self._hand_over(pending, interrupted=interrupted)
        elif interrupted:
            return
        elif self._consent is not None:
            self._consent.handle_reply_ended()
        else:
            self._follow_up()

    def _follow_up(self) -> None:
        """Carry out the request, or answer the words, that waited for the agent to finish speaking."""
        request, self._requests.transfer = self._requests.transfer, None
        if request is not None and not self._lifetime.transfer.in_progress:
            self._lifetime.start(self._transfer_call, request)
        elif (reason := self._requests.person) is not None and self._context.call.queue and not self._silenced:
            self._requests.person = None
            self._wait.start(self._context.call.queue, reason)
        elif self._requests.ending is not None:
            self._lifetime.end(self._requests.ending)
        elif (words := self._interruptions.take_held_back()).kept:
            self._take_turn(words)
        elif self._context.call.voicemail and not self.transcript.has_caller_turn():
            self.speech_output.playout.add(render_beep(self._context.encoding))

    # --- hand-offs ---

    def build_generator(self, agent: CallAgent, tools: Sequence[Tool]) -> ResponseGenerator:
        """Build the generator of an agent's part, with tools besides those that the agent has in every call."""
        call = self._context.call
        own = build_call_tools(call, agent, self._requests, self._press_digits)
        return ResponseGenerator(call, agent, self.speech_output, [*own, *tools], self)

    def open_stream(self, agent: CallAgent) -> TranscriptionStream:
        """Begin to transcribe for an agent that will get the call."""
        streams = self.speech_input.streams
        streams.start(stream := streams.create(agent), self._lifetime.start)
        return stream

    async def _force_handoff(self, handoff: Handoff) -> None:
        """Hand the call over because of a fact, and interrupt what the agent says."""
        try:
            await self.parts.request(handoff, forced=True)
        except ToolError as error:
            self.generator.add_instruction(FAILED_NOTE.format(reason=error.message))
            self._answer()
            return
        if (pending := self.parts.take_pending()) is not None:
            self._interrupt()
            self._hand_over(pending, interrupted=False)

    def _hand_over(self, pending: PendingHandoff, *, interrupted: bool) -> None:
        """Let the next agent go on, with the caller's words if there are any that nobody has answered."""
        self.parts.switch(pending)
        self._requests.ending = self._requests.transfer = self._requests.person = None
        self.speech_input.change_stream(pending.stream)
        self._warm_up()
        greeting = pending.handoff.greeting
        is_speaking = self.speech_input.activity.speaking or not self.speech_input.transcription.idle.is_set()
        if interrupted or is_speaking or self._silenced or self.endpointing.words.kept:
            return
        if (words := self._interruptions.take_held_back()).kept:
            self._take_turn(words)
        elif pending.mode != "return" and (forced := self.parts.find_forced({})) is not None:
            self._lifetime.start(self._force_handoff, forced)
        elif pending.speaks_first:
            self._answer(waits_since=self._context.clock())
        elif greeting == "own":
            self.speech_output.say_only(self._write_greeting())

    # --- the agent's replies and tools ---

    async def enter_digits(self, reply: SpokenReply, entries: Sequence[KeypadEntry]) -> Mapping[str, str] | None:
        """Let the caller enter the arguments of a tool on the keypad."""
        return await self.keypad.enter_digits(reply, entries)

    async def handle_tool_result(self, name: str, result: JsonObject, kept: JsonObject) -> None:
        """Record the result of a tool, and hand the call over if the result forces that, or what was learned by it."""
        self.transcript.add_tool_use(name, kept)
        await self.parts.learn_from_result(name, result)
        if self.parts.pending is None and (handoff := self.parts.find_forced({"tool": name, "result": result})):
            try:
                await self.parts.request(handoff, forced=True)
            except ToolError as error:
                self.generator.add_instruction(FAILED_NOTE.format(reason=error.message))

    async def hold_back(self, finding: Finding, sentence: str) -> None:
        """Record a sentence that the agent must not say, and has not said."""
        call = self._context.call
        kept = (await call.agent.redactor.search_and_redact(sentence)).kept
        self.transcript.add("system", describe(finding, kept))
        at = self.transcript.entries[-1].timestamp_ms
        call.log.record_intervention(Intervention(finding.rule, finding.name, "held_back", call.agent.id, at))

    def may_go_on(self, reply: SpokenReply) -> bool:
        """Return whether the agent may go on after its tools; otherwise let the next agent prepare its answer."""
        if self.parts.pending is None:
            return True
        self.parts.prepare_answer(reply.text)
        return False

    async def _transfer_call(self, request: TransferTo) -> None:
        try:
            await self._lifetime.transfer.execute(request.to_number, request.introduction.strip())
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

    def silence_agent(self) -> None:
        """Stop the agent within its word, for a supervisor or last words, and clear the carrier's buffer."""
        self._wait.stop()
        self._silenced = True
        if self._consent is not None:
            self._consent.give_up()
            self._consent = None
        self._interrupt()
        if self.speech_output.playout.is_playing(self._context.clock()):
            self.speech_output.playout.clear()
        self._take_unfinished_turn()
        if (words := self._interruptions.take_held_back()).kept:
            self._take_turn(words)

    def resume_agent(self) -> None:
        """Let the agent speak at once; if the caller is speaking, the agent answers them afterwards."""
        self._silenced = False
        if not self.speech_input.activity.speaking and self.speech_input.transcription.idle.is_set():
            self._answer()
