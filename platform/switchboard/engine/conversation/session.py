"""One live call: its parts, and what each of them tells the others."""

import asyncio
import json
from collections.abc import Coroutine

import structlog

from switchboard.engine.conversation.call import (
    CallResult,
    CallUsage,
    Clock,
    EndedReason,
    LiveCall,
    MediaSocket,
    Role,
    Tool,
    TranscriptEntry,
    TransferTargetEvent,
)
from switchboard.engine.conversation.handoff import voicemail
from switchboard.engine.conversation.handoff.supervision import AgentState, Supervision
from switchboard.engine.conversation.handoff.takeover import SessionContext
from switchboard.engine.conversation.handoff.transfer import Transfer, TransferRequest
from switchboard.engine.conversation.knowledge import SearchKnowledge, warm_up
from switchboard.engine.conversation.latency import TurnClock
from switchboard.engine.conversation.media.dtmf import render_tones
from switchboard.engine.conversation.media.playout import Playout
from switchboard.engine.conversation.media.recording import Recording
from switchboard.engine.conversation.response_generator import ResponseGenerator, fill_placeholders
from switchboard.engine.conversation.speech.speech_input import SpeechInput
from switchboard.engine.conversation.speech.speech_output import SpeechOutput, SpokenReply
from switchboard.engine.conversation.speech.vad import STOP_SECONDS
from switchboard.engine.conversation.tools import AgentRequests, EndCall, PressDigits, TransferCall
from switchboard.engine.conversation.transcript import CallTranscript
from switchboard.engine.conversation.turns import CallTimeouts, DigitCollector, is_interruption
from switchboard.plugin_sdk import (
    DigitPressed,
    Encoding,
    Frame,
    JsonObject,
    MarkReached,
    MediaStopped,
    Message,
    ProviderError,
)

logger = structlog.get_logger()
HANG_UP_SECONDS = 5.0
LAST_WORDS_SECONDS = 1.5
RECORDING_SECONDS = 1.0


class CallSession:
    """A call from its media stream's start to its end. The engine feeds its `ears` and calls `tick`; everything else comes from the parts."""

    def __init__(self, call: LiveCall, socket: MediaSocket, encoding: Encoding, clock: Clock) -> None:
        agent = call.agent
        self.call = call
        self._encoding: Encoding = encoding
        self._ear = SpeechInput(call, encoding, clock)
        self._ear.on_started = self._speech_started
        self._ear.on_stopped = self._speech_stopped
        self._ear.listener.on_transcript = self._transcribed
        self.ears = [self._ear]
        self._socket = socket
        self._clock = clock
        self._began = socket.opened
        self._wishes = AgentRequests()
        self._ended: asyncio.Future[tuple[EndedReason, str | None]] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering: asyncio.Task[None] | None = None
        self._transcript = CallTranscript(call)
        self._turns = 0
        self._held_back = ""
        self._transfer = Transfer(call.leg, agent.stt_language)
        self._digits = DigitCollector()
        self._recording = Recording(call.recording_path, encoding) if call.recording_path else None
        self._recorded_at = self._began
        self._playout = Playout(socket, call.codec, clock)
        if self._recording is not None:
            self._playout.timelines.append(self._recording)
        self._speaker = SpeechOutput(call, self._playout, encoding, clock)
        self._speaker.on_spoken = self._spoken
        tools: list[Tool] = [EndCall(self._wishes), TransferCall(self._wishes), PressDigits(self._press), *call.tools]
        if call.knowledge is not None:
            tools.append(SearchKnowledge(call.knowledge))
        self._thinker = ResponseGenerator(call, self._speaker, tools)
        self._thinker.on_tool_used = self._tool_used
        self.desk = Supervision(
            self, SessionContext(call, encoding, clock, self._playout, self._thinker, self._transcript)
        )
        silence = voicemail.SILENCE_SECONDS if call.voicemail else agent.end_call_silence_seconds
        longest = voicemail.MAX_SECONDS if call.voicemail else agent.max_call_duration_seconds
        self._patience = CallTimeouts(self._began, silence_seconds=silence, max_seconds=longest)

    # --- its life ---

    async def run(self) -> CallResult:
        """Hold the call to its end."""
        self.start(self._receive())
        self.start(self._playout.run())
        self.start(self._speaker.run())
        self.start(self._ear.listener.run())
        self._greet()
        try:
            reason, error = await self._ended
            if reason is EndedReason.TAKEN_OVER:
                await self._hang_up()
            if reason in (EndedReason.CALLER_HUNG_UP, EndedReason.TAKEN_OVER):
                await self._last_words()
            elif reason is EndedReason.TRANSFERRED:
                await self._transfer.settled()
        finally:
            await self._stop()
            await self._transfer.call_off()
        if reason not in (EndedReason.CALLER_HUNG_UP, EndedReason.TRANSFERRED, EndedReason.TAKEN_OVER):
            await self._hang_up()
        if reason is EndedReason.CALLER_HUNG_UP and self.desk.takeover is not None:
            reason = EndedReason.TAKEN_OVER
        self.desk.close(reason)
        await self._socket.close()
        if self._recording is not None:
            await self._recording.close(self._playout.position(self._clock()))
        return self._result(reason, error)

    def end(self, reason: EndedReason, error: str | None = None) -> None:
        """End the call; the first reason counts."""
        if not self._ended.done():
            if reason is EndedReason.CALLER_HUNG_UP and self._transfer.leaving is not None:
                reason = EndedReason.TRANSFERRED
            self._ended.set_result((reason, error))

    def say(self, text: str) -> None:
        """Have the agent say something now; nothing happens while a person has the call."""
        if self.desk.takeover is not None:
            return
        self._interrupt()
        reply = self._speaker.begin()
        self._speaker.say(reply, text)
        reply.whole = True

    def told(self, told: TransferTargetEvent) -> None:
        """The carrier has told something about the target of a transfer."""
        self._transfer.told(told)

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, ProviderError):
            self.end(EndedReason.PROVIDER_FAILED, error.message)
        elif isinstance(error, ConnectionError):
            self.end(EndedReason.CALLER_HUNG_UP)
        else:
            logger.error("call failed", call_id=str(self.call.call_id), exc_info=error)
            self.end(EndedReason.ERROR, "The call failed because of an internal error.")

    async def _stop(self) -> None:
        if self._speaker.reply is not None:
            self._speaker.interrupt()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _hang_up(self) -> None:
        try:
            async with asyncio.timeout(HANG_UP_SECONDS):
                await self.call.leg.hang_up()
        except (ProviderError, TimeoutError) as error:
            logger.warning("carrier did not hang up", call_id=str(self.call.call_id), error=str(error))

    async def _last_words(self) -> None:
        """What was said just before the call ended is still transcribed."""
        if not all(await asyncio.gather(*(ear.last_words(LAST_WORDS_SECONDS) for ear in self.ears))):
            logger.info("the last words were not transcribed in time", call_id=str(self.call.call_id))

    def _result(self, reason: EndedReason, error: str | None) -> CallResult:
        usage = CallUsage(self._ear.listener.seconds + self.desk.seconds, self._speaker.characters, self._thinker.usage)
        return CallResult(
            ended_reason=reason,
            error_message=error,
            duration_seconds=self._clock() - self._began,
            transcript=tuple(self._transcript.entries),
            latencies=tuple(self._transcript.latencies),
            usage=usage,
            recording_path=self.call.recording_path,
            transferred_to=self._transfer.leaving if reason is EndedReason.TRANSFERRED else None,
        )

    # --- what comes in ---

    async def _receive(self) -> None:
        dropped = 0
        while (message := await self._socket.receive()) is not None:
            try:
                self._take(message)
            except ValueError:
                dropped += 1
                if dropped == 1:
                    logger.warning("the carrier sent a message that is not understood", call_id=str(self.call.call_id))
        self.end(EndedReason.CALLER_HUNG_UP)

    def _take(self, message: Frame) -> None:
        event = self.call.codec.decode(message)
        if isinstance(event, bytes):
            self._ear.hear(event)
            for timeline in self._playout.timelines:
                timeline.caller(event, self._playout.position(self._ear.last_audio))
        elif isinstance(event, MarkReached):
            self._playout.reached(event.name)
        elif isinstance(event, DigitPressed):
            self._patience.touch(self._clock())
            if (digits := self._digits.press(event.digit, self._clock())) is not None:
                self._pressed(digits)
        elif isinstance(event, MediaStopped):
            self.end(EndedReason.CALLER_HUNG_UP)

    def _pressed(self, digits: str) -> None:
        self._ear.speech_began = self._ear.last_voice = self._clock()
        self._turn(f"DTMF: {digits}")

    def _speech_started(self) -> None:
        self._patience.touch(self._clock())
        agent = self.call.agent
        if agent.allow_interruptions and agent.interruption_min_words == 0 and not self.call.voicemail:
            self._interrupt()

    def _speech_stopped(self) -> None:
        self._patience.touch(self._clock())
        self._foresee()

    def _transcribed(self, text: str, finished: bool) -> None:
        self._patience.touch(self._clock())
        if self.desk.takeover is not None:
            if finished and text:
                self._turn(text)
            return
        busy = self._speaker.is_talking() or self._is_thinking()
        if text and busy and is_interruption(self.call.agent, text):
            self._interrupt()
            busy = False
        self._thinker.recall.hearing = "" if finished else text
        if not finished:
            if not self._ear.activity.speaking:
                self._foresee()
            return
        if not text:
            self._answer_if_owed()
        elif not busy:
            self._turn(text)
        elif not self.call.agent.allow_interruptions:
            self._held_back = f"{self._held_back} {text}".strip()

    def _foresee(self) -> None:
        """The caller has stopped: what is known of their words by now is probably all of them."""
        if (work := self._thinker.recall.foresee()) is not None:
            self.start(work)

    # --- what the agent does ---

    def _greet(self) -> None:
        if self.call.knowledge is not None:
            self.start(warm_up(self.call.knowledge))
        text = fill_placeholders(self.call.agent.greeting_message, self.call.variables)
        if self.call.voicemail:
            text = text or voicemail.DEFAULT_GREETING
        if text:
            reply = self._speaker.begin()
            self._speaker.say(reply, text)
            reply.whole = True

    def _turn(self, text: str) -> None:
        now = self._clock()
        self._note("user", text, self._ear.speech_began, now)
        self._thinker.heard(text)
        if not self.call.voicemail:
            self._answer()

    def _answer(self) -> None:
        if self.desk.takeover is not None:
            return
        self._interrupt()
        self._turns += 1
        turn = TurnClock(self._turns, self._ear.last_voice)
        turn.reach("endpoint", self._ear.last_voice + STOP_SECONDS)
        turn.reach("transcript", self._clock())
        self._answering = self.start(self._thinker.answer(turn, self._clock))

    def _answer_if_owed(self) -> None:
        """Noise broke in before the agent could answer: it answers now."""
        if (
            self._thinker.history[-1].role == "user"
            and not self._is_thinking()
            and not self._speaker.is_talking()
            and not self.call.voicemail
        ):
            self._answer()

    def _is_thinking(self) -> bool:
        return self._answering is not None and not self._answering.done()

    def _interrupt(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None
        if self._speaker.reply is not None:
            self._wishes.hang_up, self._wishes.transfer = False, None
            self._speaker.interrupt()

    def _spoken(self, reply: SpokenReply, heard: str, interrupted: bool) -> None:
        now = self._clock()
        self._patience.touch(now)
        if heard:
            self._note("agent", heard, reply.started_at or now, now, interrupted=interrupted)
        known = " ".join(sentence.text for sentence in reply.sentences[: reply.in_history])
        self._thinker.said(heard.removeprefix(known).strip())
        if reply.turn is not None:
            self._transcript.latency(reply.turn.result())
        if not interrupted:
            self._afterwards()

    def _afterwards(self) -> None:
        wish, self._wishes.transfer = self._wishes.transfer, None
        if wish is not None and not self._transfer.under_way:
            self.start(self._make(wish))
        elif self._wishes.hang_up:
            self.end(EndedReason.AGENT_HUNG_UP)
        elif self._held_back:
            text, self._held_back = self._held_back, ""
            self._turn(text)
        elif self.call.voicemail and not self._transcript.has("user"):
            self._playout.add(voicemail.render_beep(self._encoding))

    async def _make(self, wish: TransferRequest) -> None:
        try:
            await self._transfer.make(wish)
        except ProviderError as error:
            self._thinker.history.append(
                Message("system", f"The transfer did not work: {error.message}. Tell the caller.")
            )
            self._answer()
            return
        self.end(EndedReason.TRANSFERRED)

    async def _press(self, digits: str) -> None:
        if self.call.digits_as_tones:
            self._playout.add(render_tones(digits, self._encoding))
        else:
            await self.call.leg.send_digits(digits)

    def _tool_used(self, name: str, result: JsonObject) -> None:
        now = self._clock()
        self._note("tool", json.dumps({"tool": name, "result": result}), now, now)

    def _note(self, role: Role, content: str, began: float, ended: float, *, interrupted: bool = False) -> None:
        self._transcript.add(TranscriptEntry(role, content, self._ms(began), self._ms(ended), interrupted))

    # --- what a person at the call's desk does ---

    def doing(self) -> AgentState:
        """What the agent does."""
        if self.desk.takeover is not None:
            return "silent"
        return "speaking" if self._speaker.is_talking() else "thinking" if self._is_thinking() else "listening"

    def not_to_be_taken_over(self) -> str | None:
        """Why nobody can take the call over, None where one can."""
        if self._ended.done() or self._transfer.under_way:
            return "The call is about to end."
        return "The call is recorded by the answering machine." if self.call.voicemail else None

    def fall_silent(self) -> None:
        """A person speaks from now on: the agent stops within its word, and the carrier drops what it has of it."""
        self._interrupt()
        if self._playout.is_playing(self._clock()):
            self._playout.clear()
        text, self._held_back = self._held_back, ""
        if text:
            self._turn(text)

    def go_on(self) -> None:
        """The agent has the call again and speaks, unless the caller does: they are answered then."""
        if not self._ear.activity.speaking and self._ear.listener.idle.is_set():
            self._answer()

    # --- the clock ---

    def tick(self, now: float) -> None:
        """What is due: pacing, replies that are over, silence, length, a recording to be written."""
        self._playout.tick(now)
        self._speaker.tick()
        self._ear.tick(now)
        if self.desk.feed is not None:
            self.desk.tick(now)
        if (digits := self._digits.idle(now)) is not None:
            self._pressed(digits)
        if self.doing() != "listening" or self._ear.activity.speaking or self._transfer.under_way:
            self._patience.touch(now)
        if (reason := self._patience.exhausted(now)) is not None:
            self.end(EndedReason.VOICEMAIL if self.call.voicemail else reason)
        if self._recording is not None and now - self._recorded_at >= RECORDING_SECONDS:
            self._recorded_at = now
            self.start(self._recording.write(self._playout.position(now)))

    def _ms(self, moment: float) -> int:
        return max(0, round((moment - self._began) * 1000))
