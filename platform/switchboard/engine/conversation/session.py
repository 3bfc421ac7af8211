"""One live call: the order in which its parts start, end, and are closed, and its input from the carrier."""

import asyncio
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import (
    CallResult,
    CallUsage,
    EndedReason,
    SessionContext,
)
from switchboard.engine.conversation.lifetime import CallLifetime
from switchboard.engine.conversation.machine import MachineDialog
from switchboard.engine.conversation.media.recording import Channel, Recording
from switchboard.engine.conversation.speech.speech_input import BatchedDetection
from switchboard.engine.conversation.supervision import Supervision
from switchboard.engine.conversation.transfer import Transfer
from switchboard.engine.conversation.turn_taking import FAREWELL_SECONDS, TurnTaking
from switchboard.plugin_sdk import DigitPressed, Frame, MarkReached, MediaStopped, ProviderError

logger = structlog.get_logger()
HANG_UP_SECONDS = 5.0
LAST_WORDS_SECONDS = 1.5
RECORDING_SECONDS = 1.0
UNFINISHED_SECONDS = 5.0
"""Interval at which an utterance in progress is logged. A process that dies loses no more of it."""
HUNG_UP_BY_OTHERS = (EndedReason.CALLER_HUNG_UP, EndedReason.TRANSFERRED, EndedReason.TAKEN_OVER)


class CallSession:
    """A call from the start of its media stream to its end.

    `docs/diagrams/call-audio.md` shows how the parts work together. Whatever ends the call does so by its `lifetime`.
    Carrier events about the target of a transfer, and about a machine that answered, go to `transfer` and `machine`.
    """

    def __init__(self, context: SessionContext, detection: BatchedDetection) -> None:
        call = context.call
        self.context = context
        self._detection = detection
        self.transfer = Transfer(call, self._render_speech)
        self.lifetime = CallLifetime(call.call_id, self.transfer)
        self._turns = TurnTaking(context, self.lifetime, detection)
        self.machine = MachineDialog(context, self._turns, self.lifetime)
        self._recording: Recording | None = None
        if call.recording_path is not None:
            awaits_consent = call.disclosure is not None and call.disclosure.consent != "none"
            self._recording = Recording(call.recording_path, context.encoding, awaits_consent=awaits_consent)
        self._recorded_at = self._logged_at = context.socket.opened_at
        self.supervision = Supervision(context, self._turns, self.lifetime, detection)

    async def run(self) -> CallResult:
        """Run the call to its end and return its result."""
        try:
            with self._detection.attach(self._turns.speech_input):
                async with self.lifetime.run_tasks():
                    reason, error = await self._converse()
        finally:
            await self.transfer.release_target()
        if reason not in HUNG_UP_BY_OTHERS:
            await self._hang_up()
        if reason is EndedReason.CALLER_HUNG_UP and self.supervision.takeover is not None:
            reason = EndedReason.TAKEN_OVER
        self.supervision.close(reason)
        await self.context.socket.close()
        if self._recording is not None:
            now, playout = self.context.clock(), self._turns.speech_output.playout
            if (since := self._find_unsettled_moment()) is not None:  # nobody knows what was said there
                for channel in Channel:
                    playout.silence(channel, since, now)
            await self._recording.close(playout.position_at(now))
        return self._build_result(reason, error)

    def shut_down(self) -> None:
        """Tell the caller that the call ends, and end it, because the process stops."""
        if self.supervision.takeover is not None or self.context.call.voicemail:
            self.lifetime.end(EndedReason.SHUTDOWN)
        elif not self.lifetime.is_ending():
            self._turns.say_farewell()
            self.lifetime.start(self._end_after_farewell)

    def tick(self, now: float) -> None:
        """Do what is due by the engine's clock."""
        self._turns.tick(now)
        if self.supervision.takeover is not None:
            self.machine.stop()
        self.machine.tick(now)
        if self.supervision.feed is not None:
            self.supervision.tick(now)
        if now - self._logged_at >= UNFINISHED_SECONDS:
            self._logged_at = now
            self._log_unfinished()
        if self._recording is not None and now - self._recorded_at >= RECORDING_SECONDS:
            self._recorded_at = now
            self._record(self._recording, now)

    async def _render_speech(self, text: str) -> bytes:
        return await self._turns.speech_output.render(text)

    def _handle_consent(self, given: bool) -> None:
        """Record from now on, or never."""
        playout = self._turns.speech_output.playout
        if self._recording is not None and given:
            self._recording.allow_caller(playout.position_at(self.context.clock()))
        elif self._recording is not None:
            playout.mixers.remove(self._recording)
            self._recording = None

    def _log_unfinished(self) -> None:
        """Log what is being said, unless some of it may still have to be redacted."""
        if self.context.call.agent.redactor.is_active:
            return
        transcript, speech, turn = self._turns.transcript, self._turns.speech_output, self._turns.endpointing
        if speech.reply is not None and speech.reply.started_at is not None:
            transcript.add_unfinished("agent", speech.get_heard_text(), speech.reply.started_at)
        elif turn.words.kept and turn.turn_started_at is not None:
            transcript.add_unfinished("user", turn.words.kept, turn.turn_started_at)

    def _record(self, recording: Recording, now: float) -> None:
        playout = self._turns.speech_output.playout
        if recording.error is None:
            unsettled = self._find_unsettled_moment()
            hold_from = None if unsettled is None else playout.hold_position(unsettled)
            self.lifetime.start(recording.write, playout.position_at(now), hold_from)
        elif recording in playout.mixers:  # a mixer that is never written would keep all audio in memory
            playout.mixers.remove(recording)

    def _find_unsettled_moment(self) -> float | None:
        """Return the moment from which the recording may still have to be silenced, None if nothing will be."""
        moments = [self._turns.keypad.entry_since]
        if self.context.call.agent.redactor.is_active:
            reply, takeover = self._turns.speech_output.reply, self.supervision.takeover
            moments += [
                self._turns.speech_input.unfinished_since,
                reply.started_at if reply is not None else None,
                takeover.speech_input.unfinished_since if takeover is not None else None,
            ]
        return min((moment for moment in moments if moment is not None), default=None)

    async def _converse(self) -> tuple[EndedReason, str | None]:
        """Start the call's parts and return why the call ends, with the caller's last words transcribed."""
        turns = self._turns
        if self._recording is not None:
            turns.speech_output.playout.mixers.append(self._recording)
        self.lifetime.start(self._read_carrier)
        self.lifetime.start(turns.speech_output.playout.run)
        self.lifetime.start(turns.speech_output.run)
        turns.speech_input.streams.start(turns.speech_input.transcription, self.lifetime.start)
        turns.greet(self._handle_consent)
        self.machine.start()
        try:
            reason, error = await self.lifetime.wait_for_end()
            if reason is EndedReason.TAKEN_OVER:
                await self._hang_up()
            if reason in (EndedReason.CALLER_HUNG_UP, EndedReason.TAKEN_OVER):
                await self._wait_for_last_words()
            elif reason is EndedReason.TRANSFERRED:
                await self.transfer.wait_until_attempted()
            return reason, error
        finally:
            turns.stop()

    async def _read_carrier(self) -> None:
        """Read audio, marks, and keys until the carrier closes the socket, which ends the call."""
        call, dropped = self.context.call, 0
        while (message := await self.context.socket.receive()) is not None:
            try:
                self._handle_message(message)
            except ValueError:
                dropped += 1
                if dropped == 1:
                    logger.warning("carrier message not understood", call_id=str(call.call_id))
        if call.codec.announces_end:
            self.lifetime.fail(ProviderError("the carrier has lost the call"))
        else:
            self.lifetime.end(EndedReason.CALLER_HUNG_UP)

    def _handle_message(self, message: Frame) -> None:
        event, playout = self.context.call.codec.decode(message), self._turns.speech_output.playout
        if isinstance(event, bytes):
            self._turns.speech_input.add_audio(event)
            self.machine.add_audio(event)
            playout.mix_caller_audio(event, self.context.clock())
        elif isinstance(event, MarkReached):
            playout.handle_mark(event.name)
        elif isinstance(event, DigitPressed):
            self._turns.handle_digit(event.digit)
        elif isinstance(event, MediaStopped):
            self.lifetime.end(EndedReason.CALLER_HUNG_UP)

    async def _end_after_farewell(self) -> None:
        await asyncio.sleep(FAREWELL_SECONDS)
        self.lifetime.end(EndedReason.SHUTDOWN)

    async def _wait_for_last_words(self) -> None:
        takeover = self.supervision.takeover
        inputs = [self._turns.speech_input, *([takeover.speech_input] if takeover is not None else [])]
        if not all(await asyncio.gather(*(speech.wait_for_last_words(LAST_WORDS_SECONDS) for speech in inputs))):
            logger.info("last words were not transcribed in time", call_id=str(self.context.call.call_id))

    async def _hang_up(self) -> None:
        try:
            async with asyncio.timeout(HANG_UP_SECONDS):
                await self.context.call.leg.hang_up()
        except (ProviderError, TimeoutError) as error:
            logger.warning("carrier did not hang up", call_id=str(self.context.call.call_id), error=str(error))

    def _build_usage(self) -> dict[UUID, CallUsage]:
        """Return the usage of each agent; supervisors' speech is that of the agent which the call began with."""
        turns, usage = self._turns, dict[UUID, CallUsage]()
        for part in turns.parts.all:
            used = usage.setdefault(part.agent.id, CallUsage(embeddings=part.agent.embeddings))
            used.models += part.generator.usage
            used.dropped_models += part.generator.preemptive.dropped
        for stream in turns.speech_input.streams.all:
            usage[stream.agent.id].speech_to_text_seconds += stream.seconds
        for agent_id, characters in turns.speech_output.characters.items():
            usage[agent_id].text_to_speech_characters += characters
        usage[turns.parts.all[0].agent.id].speech_to_text_seconds += self.supervision.seconds
        return usage

    def _build_result(self, reason: EndedReason, error: str | None) -> CallResult:
        turns, recording = self._turns, self._recording
        return CallResult(
            ended_reason=reason,
            error_message=error,
            duration_seconds=self.context.clock() - self.context.socket.opened_at,
            transcript=tuple(turns.transcript.entries),
            latencies=tuple(turns.transcript.latencies),
            agent_usage=self._build_usage(),
            recording_path=recording.path if recording is not None and recording.error is None else None,
            recording_error=recording.error if recording is not None else None,
            transferred_to=self.transfer.connecting_to if reason is EndedReason.TRANSFERRED else None,
            machine_answered=self.machine.found,
        )
