"""One live call: its parts, and what each of them tells the others."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Coroutine

import structlog

from switchboard.conversation import voicemail
from switchboard.conversation.call import CallResult, CallUsage, EndedReason, LiveCall, MediaSocket, Role, Tool, TranscriptEntry, TurnLatency
from switchboard.conversation.dtmf import tones
from switchboard.conversation.knowledge import SearchKnowledge, warm_up
from switchboard.conversation.latency import TurnClock
from switchboard.conversation.listening import Listener
from switchboard.conversation.playout import Playout
from switchboard.conversation.recording import Recording
from switchboard.conversation.speaking import Reply, Speaker
from switchboard.conversation.thinking import Thinker, filled
from switchboard.conversation.tools import EndCall, PressDigits, TransferCall, Wishes
from switchboard.conversation.turns import Digits, Patience, is_interruption
from switchboard.conversation.vad import STOP_SECONDS, WINDOW, Change, VoiceActivity
from switchboard.plugins import DigitPressed, Encoding, Frame, JsonObject, MarkReached, MediaStopped, Message, ProviderError

logger = structlog.get_logger()
Clock = Callable[[], float]

PRE_ROLL_WINDOWS = 20
HANG_UP_SECONDS = 5.0
LAST_WORDS_SECONDS = 1.5
RECORDING_SECONDS = 1.0
MUTE_SECONDS = 1.0


class Inbox(bytearray):
    """The caller's audio that is still to be judged. `on_window` is called where there is enough of it."""

    on_window: Callable[[], None] = staticmethod(lambda: None)

    def take(self, audio: bytes) -> None:
        """Add what has come in."""
        self.extend(audio)
        if len(self) >= WINDOW:
            self.on_window()


class CallSession:
    """A call from its media stream's start to its end. The engine calls `judged` and `tick`; everything else comes from the parts."""

    def __init__(self, call: LiveCall, socket: MediaSocket, encoding: Encoding, clock: Clock) -> None:
        agent = call.agent
        self.call = call
        self.inbox = Inbox()
        self.encoding: Encoding = encoding
        self.activity = VoiceActivity(confidence=agent.vad_confidence, start_seconds=agent.vad_start_secs, min_volume=agent.vad_min_volume)
        self._socket = socket
        self._clock = clock
        self._began = clock()
        self._wishes = Wishes()
        self._ended: asyncio.Future[tuple[EndedReason, str | None]] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering: asyncio.Task[None] | None = None
        self._pre_roll: deque[bytes] = deque(maxlen=PRE_ROLL_WINDOWS)
        self._log = _Log(call)
        self._speech_began = self._began
        self._last_voice = self._began
        self._last_audio = self._began
        self._turns = 0
        self._held_back = ""
        self._transferring: str | None = None
        self._digits = Digits()
        self._recording = Recording(call.recording_path, encoding) if call.recording_path else None
        self._recorded_at = self._began
        self._playout = Playout(socket, call.codec, clock)
        self._playout.recording = self._recording
        self._speaker = Speaker(call, self._playout, encoding, clock)
        self._speaker.on_spoken = self._spoken
        self._listener = Listener(call, encoding)
        self._listener.on_transcript = self._transcribed
        tools: list[Tool] = [EndCall(self._wishes), TransferCall(self._wishes), PressDigits(self._press), *call.tools]
        if call.knowledge is not None:
            tools.append(SearchKnowledge(call.knowledge))
        self._thinker = Thinker(call, self._speaker, tools)
        self._thinker.on_tool_used = self._tool_used
        silence = voicemail.SILENCE_SECONDS if call.voicemail else agent.end_call_silence_seconds
        longest = voicemail.MAX_SECONDS if call.voicemail else agent.max_call_duration_seconds
        self._patience = Patience(self._began, silence_seconds=silence, max_seconds=longest)

    # --- its life ---

    async def run(self) -> CallResult:
        """Hold the call to its end."""
        self._start(self._receive())
        self._start(self._playout.run())
        self._start(self._speaker.run())
        self._start(self._listener.run())
        self._greet()
        try:
            reason, error = await self._ended
            if reason is EndedReason.CALLER_HUNG_UP:
                await self._last_words()
        finally:
            await self._stop()
        if reason not in (EndedReason.CALLER_HUNG_UP, EndedReason.TRANSFERRED):
            await self._hang_up()
        await self._socket.close()
        if self._recording is not None:
            await self._recording.close(self._playout.position(self._clock()))
        return self._result(reason, error)

    def end(self, reason: EndedReason, error: str | None = None) -> None:
        """End the call; the first reason counts."""
        if not self._ended.done():
            if reason is EndedReason.CALLER_HUNG_UP and self._transferring is not None:
                reason = EndedReason.TRANSFERRED
            self._ended.set_result((reason, error))

    def say(self, text: str) -> None:
        """Have the agent say something now."""
        self._interrupt()
        reply = self._speaker.begin()
        self._speaker.say(reply, text)
        reply.whole = True

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
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
        """What the caller said just before hanging up is still transcribed."""
        if self.activity.speaking:
            self._listener.finalize()
        try:
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await self._listener.idle.wait()
        except TimeoutError:
            logger.info("the caller's last words were not transcribed in time", call_id=str(self.call.call_id))

    def _result(self, reason: EndedReason, error: str | None) -> CallResult:
        usage = CallUsage(self._listener.seconds, self._speaker.characters, self._thinker.usage)
        return CallResult(
            ended_reason=reason,
            error_message=error,
            duration_seconds=self._clock() - self._began,
            transcript=tuple(self._log.entries),
            latencies=tuple(self._log.latencies),
            usage=usage,
            recording_path=self.call.recording_path,
            transferred_to=self._transferring if reason is EndedReason.TRANSFERRED else None,
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
            self._last_audio = self._clock()
            self.inbox.take(event)
            if self._recording is not None:
                self._recording.caller(event, self._playout.position(self._last_audio))
        elif isinstance(event, MarkReached):
            self._playout.reached(event.name)
        elif isinstance(event, DigitPressed):
            self._patience.touch(self._clock())
            if (digits := self._digits.press(event.digit, self._clock())) is not None:
                self._pressed(digits)
        elif isinstance(event, MediaStopped):
            self.end(EndedReason.CALLER_HUNG_UP)

    def judged(self, window: bytes, change: Change) -> None:
        """Voice activity of the caller's next 32 milliseconds."""
        self._pre_roll.append(window)
        if change is Change.STARTED:
            self._speech_started()
        elif self.activity.speaking or change is Change.STOPPED:
            self._listener.hear(window)
        if change is Change.STOPPED:
            self._speech_stopped()

    def _pressed(self, digits: str) -> None:
        self._speech_began = self._last_voice = self._clock()
        self._turn(f"DTMF: {digits}")

    def _speech_started(self) -> None:
        now = self._clock()
        self._patience.touch(now)
        self._speech_began = now - self.call.agent.vad_start_secs
        self._listener.hear(b"".join(self._pre_roll))
        agent = self.call.agent
        if agent.allow_interruptions and agent.interruption_min_words == 0 and not self.call.voicemail:
            self._interrupt()

    def _speech_stopped(self) -> None:
        self._last_voice = self._clock() - STOP_SECONDS
        self._patience.touch(self._clock())
        self._listener.finalize()

    def _transcribed(self, text: str, finished: bool) -> None:
        self._patience.touch(self._clock())
        busy = self._speaker.is_talking() or self._is_thinking()
        if text and busy and is_interruption(self.call.agent, text):
            self._interrupt()
            busy = False
        if not finished:
            return
        if not text:
            self._answer_if_owed()
        elif not busy:
            self._turn(text)
        elif not self.call.agent.allow_interruptions:
            self._held_back = f"{self._held_back} {text}".strip()

    # --- what the agent does ---

    def _greet(self) -> None:
        if self.call.knowledge is not None:
            self._start(warm_up(self.call.knowledge))
        text = filled(self.call.agent.greeting_message, self.call.variables)
        if self.call.voicemail:
            text = text or voicemail.DEFAULT_GREETING
        if text:
            reply = self._speaker.begin()
            self._speaker.say(reply, text)
            reply.whole = True

    def _turn(self, text: str) -> None:
        now = self._clock()
        self._log.entry("user", text, self._ms(self._speech_began), self._ms(now))
        self._thinker.heard(text)
        if not self.call.voicemail:
            self._answer()

    def _answer(self) -> None:
        self._interrupt()
        self._turns += 1
        turn = TurnClock(self._turns, self._last_voice)
        turn.reach("endpoint", self._last_voice + STOP_SECONDS)
        turn.reach("transcript", self._clock())
        self._answering = self._start(self._thinker.answer(turn, self._clock))

    def _answer_if_owed(self) -> None:
        """Noise broke in before the agent could answer: it answers now."""
        if self._thinker.history[-1].role == "user" and not self._is_thinking() and not self._speaker.is_talking() and not self.call.voicemail:
            self._answer()

    def _is_thinking(self) -> bool:
        return self._answering is not None and not self._answering.done()

    def _interrupt(self) -> None:
        if self._answering is not None:
            self._answering.cancel()
            self._answering = None
        if self._speaker.reply is not None:
            self._wishes.hang_up, self._wishes.transfer_to = False, None
            self._speaker.interrupt()

    def _spoken(self, reply: Reply, heard: str, interrupted: bool) -> None:
        now = self._clock()
        self._patience.touch(now)
        if heard:
            self._log.entry("agent", heard, self._ms(reply.started_at or now), self._ms(now), interrupted=interrupted)
        known = " ".join(sentence.text for sentence in reply.sentences[: reply.in_history])
        self._thinker.said(heard.removeprefix(known).strip())
        if reply.turn is not None:
            self._log.latency(reply.turn.result())
        if not interrupted:
            self._afterwards()

    def _afterwards(self) -> None:
        if self._wishes.transfer_to is not None:
            self._start(self._transfer(self._wishes.transfer_to))
            self._wishes.transfer_to = None
        elif self._wishes.hang_up:
            self.end(EndedReason.AGENT_HUNG_UP)
        elif self._held_back:
            text, self._held_back = self._held_back, ""
            self._turn(text)
        elif self.call.voicemail and not self._log.has("user"):
            self._playout.add(voicemail.beep(self.encoding))

    async def _transfer(self, to_number: str) -> None:
        self._transferring = to_number
        try:
            await self.call.leg.transfer(to_number)
        except ProviderError as error:
            self._transferring = None
            self._thinker.history.append(Message("system", f"The transfer did not work: {error.message}. Tell the caller."))
            self._answer()
            return
        self.end(EndedReason.TRANSFERRED)

    async def _press(self, digits: str) -> None:
        if self.call.digits_as_tones:
            self._playout.add(tones(digits, self.encoding))
        else:
            await self.call.leg.send_digits(digits)

    def _tool_used(self, name: str, result: JsonObject) -> None:
        now = self._ms(self._clock())
        self._log.entry("tool", json.dumps({"tool": name, "result": result}), now, now)

    # --- the clock ---

    def tick(self, now: float) -> None:
        """What is due: pacing, replies that are over, silence, length, a recording to be written."""
        self._playout.tick(now)
        self._speaker.tick()
        if self.activity.speaking and now - self._last_audio > MUTE_SECONDS:
            self.activity.speaking = False
            self._speech_stopped()
        if (digits := self._digits.idle(now)) is not None:
            self._pressed(digits)
        if self._speaker.is_talking() or self._is_thinking() or self.activity.speaking or self._transferring is not None:
            self._patience.touch(now)
        if (reason := self._patience.exhausted(now)) is not None:
            self.end(EndedReason.VOICEMAIL if self.call.voicemail else reason)
        if self._recording is not None and now - self._recorded_at >= RECORDING_SECONDS:
            self._recorded_at = now
            self._start(self._recording.write(self._playout.position(now)))

    def _ms(self, moment: float) -> int:
        return max(0, round((moment - self._began) * 1000))


class _Log:
    """The transcript and the latencies, kept for the result and told to the call's log."""

    def __init__(self, call: LiveCall) -> None:
        self._log = call.log
        self.entries: list[TranscriptEntry] = []
        self.latencies: list[TurnLatency] = []

    def entry(self, role: Role, content: str, started_ms: int, ended_ms: int, *, interrupted: bool = False) -> None:
        entry = TranscriptEntry(role, content, started_ms, ended_ms, interrupted)
        self.entries.append(entry)
        self._log.entry(entry)

    def latency(self, latency: TurnLatency) -> None:
        self.latencies.append(latency)
        self._log.latency(latency)

    def has(self, role: Role) -> bool:
        return any(entry.role == role for entry in self.entries)
