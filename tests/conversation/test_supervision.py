"""Supervision of live calls, on real audio with the real voice activity detection."""

import asyncio
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import numpy as np
import pytest
from switchboard.engine.conversation.agent_settings import VoicemailPolicy
from switchboard.engine.conversation.call import (
    CallResult,
    EndedReason,
    LiveCall,
    MachineEvent,
    Supervisor,
    TranscriptEntry,
)
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.supervision import (
    HANDED_BACK_INSTRUCTION,
    LEASE_SECONDS,
    RECONNECT_SECONDS,
    STATE_INTERVAL_SECONDS,
    TAKEN_OVER_INSTRUCTION,
    CallOver,
    NewEntries,
    Supervision,
    SupervisionRefused,
    SupervisionState,
)
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, TranscriptionRequest
from switchboard.plugin_sdk.audio import decode_audio

from tests.fixtures.conversation import (
    Log,
    Model,
    Socket,
    Speech,
    Transcriber,
    change_agent,
    create_call,
    synthesize_caller,
)

ADA = Supervisor(uuid4(), "Ada")
BEN = Supervisor(uuid4(), "Ben")
GREETING = "Hello, this is a rather long greeting, which goes on and on, so that there is time enough to break into it."


@dataclass(slots=True)
class Feed:
    """Feed that keeps what it sends to the monitors."""

    states: list[SupervisionState] = field(default_factory=list)
    seen: list[tuple[int, TranscriptEntry]] = field(default_factory=list)
    frames: bytearray = field(default_factory=bytearray)
    over: EndedReason | None = None
    closed: bool = False

    def send_audio(self, frames: bytes) -> None:
        self.frames += frames

    def send(self, update: SupervisionState | NewEntries | CallOver) -> None:
        if isinstance(update, SupervisionState):
            self.states.append(update)
        elif isinstance(update, NewEntries):
            self.seen += enumerate(update.entries, update.first)
        else:
            self.over = update.reason

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class MonitoredCall:
    """A call that Ada monitors."""

    live: LiveCall
    socket: Socket
    supervision: Supervision
    feed: Feed
    ada: UUID
    holding: asyncio.Task[CallResult]

    async def keep_attached(self, seconds: float) -> None:
        """Renew the lease of Ada's monitor for some seconds."""
        for _ in range(round(seconds / 0.1)):
            self.attach(self.ada)
            await asyncio.sleep(0.1)

    def attach(self, monitor: UUID, person: Supervisor = ADA, *, may_control: bool = True) -> None:
        self.supervision.attach(monitor, person, len(self.feed.seen), lambda: self.feed, may_control=may_control)

    async def speak(self, text: str) -> None:
        """Let Ada speak, and be silent for half a second."""
        audio = voice_pcm(text) + bytes(8000)
        for at in range(0, len(audio), 640):
            self.supervision.speak(self.ada, audio[at : at + 640])
            await asyncio.sleep(0.04)

    async def hang_up(self) -> CallResult:
        self.socket.hang_up()
        async with asyncio.timeout(60):
            return await self.holding


def voice_pcm(text: str) -> bytes:
    return decode_audio(synthesize_caller(text), "mulaw").tobytes()


async def start_monitored_call(engine: CallEngine, live: LiveCall) -> MonitoredCall:
    socket, feed, ada = Socket(), Feed(), uuid4()
    holding = asyncio.create_task(engine.run_call(live, socket))
    async with asyncio.timeout(60):
        while (session := engine.find_session(live.call_id)) is None:  # noqa: ASYNC110 - the engine has no event for it
            await asyncio.sleep(0)
    monitored = MonitoredCall(live, socket, session.supervision, feed, ada, holding)
    monitored.attach(ada)
    return monitored


def list_transcript(result: CallResult) -> list[tuple[str, str, bool]]:
    return [(entry.role, entry.content, entry.by_person) for entry in result.transcript if entry.role != "system"]


async def test_a_takeover_silences_the_agent_and_the_agent_knows_what_was_said(
    engine: CallEngine,
) -> None:
    model = Model("As my colleague said.")
    monitored = await start_monitored_call(
        engine, create_call(model, Transcriber("let me help you", "thank you"), greeting_message=GREETING)
    )
    await monitored.socket.spoke.wait()
    await monitored.keep_attached(0.5)
    monitored.supervision.take_over(monitored.ada)
    await asyncio.sleep(0.05)
    assert monitored.socket.cleared_at is not None
    assert monitored.socket.audio_after_clear == 0
    await monitored.speak("Let me help you with that.")
    assert monitored.socket.audio_after_clear > 0
    await monitored.socket.say(synthesize_caller("Thank you very much."))
    assert not model.requests, "the model is not asked"
    monitored.supervision.hand_back(monitored.ada)
    await monitored.keep_attached(1.0)
    result = await monitored.hang_up()
    greeting, *rest = list_transcript(result)
    assert GREETING.startswith(greeting[1])
    assert rest == [
        ("agent", "let me help you", True),
        ("user", "thank you", False),
        ("agent", "As my colleague said.", False),
    ]
    history = [(message.role, message.content) for message in model.requests[0].messages]
    assert history[-4:-1] == [
        ("system", TAKEN_OVER_INSTRUCTION),
        ("assistant", "let me help you"),
        ("user", "thank you"),
    ]
    assert history[-1] == ("system", HANDED_BACK_INSTRUCTION)
    assert isinstance(monitored.live.log, Log)
    assert monitored.live.log.holders == [ADA, None]
    assert [entry for _, entry in monitored.feed.seen] == list(result.transcript), "each entry once, in order"
    assert monitored.feed.over is EndedReason.CALLER_HUNG_UP
    assert monitored.feed.closed
    assert result.usage.speech_to_text_seconds > 2.0, "both voices were transcribed"


async def test_words_that_are_transcribed_after_the_hand_back_stand_where_they_were_said(engine: CallEngine) -> None:
    final_after = asyncio.Event()
    words = Transcriber("I would like a table for", "four people", final_after=final_after)
    monitored = await start_monitored_call(engine, create_call(Model(), words, greeting_message="Hello."))
    await monitored.socket.spoke.wait()
    await monitored.keep_attached(1.0)
    await monitored.socket.say(synthesize_caller("I would like a table for"))
    monitored.supervision.take_over(monitored.ada)
    await monitored.keep_attached(0.1)
    monitored.supervision.hand_back(monitored.ada)
    await monitored.keep_attached(0.1)
    final_after.set()
    await monitored.keep_attached(0.5)
    await monitored.socket.say(synthesize_caller("Four people."))
    await monitored.keep_attached(1.5)
    result = await monitored.hang_up()
    greeting, turn = (next(entry for entry in result.transcript if entry.role == role) for role in ("agent", "user"))
    assert turn.content == "I would like a table for four people"
    assert greeting.ended_ms <= turn.timestamp_ms < turn.ended_ms - 2000
    assert turn.pauses
    assert all(turn.timestamp_ms + pause.after_ms <= turn.ended_ms for pause in turn.pauses)


async def test_a_whisper_reaches_the_model_and_never_the_caller(engine: CallEngine) -> None:
    speech, model = Speech(), Model("Gladly.")
    monitored = await start_monitored_call(
        engine, change_agent(create_call(model, Transcriber("how much is it")), text_to_speech=speech)
    )
    monitored.supervision.whisper(monitored.ada, "Offer ten percent off.")
    await monitored.socket.say(synthesize_caller("How much is it then?"))
    await monitored.socket.spoke.wait()
    await monitored.hang_up()
    assert any(
        "Offer ten percent off." in message.content
        for message in model.requests[0].messages
        if message.role == "system"
    )
    assert [request.text for request in speech.requests] == ["Gladly."]
    assert isinstance(monitored.live.log, Log)
    assert monitored.live.log.whisperers == [ADA]
    assert [entry.person for entry in monitored.live.log.entries if "ten percent" in entry.content] == ["Ada"]


async def test_silence_does_not_end_a_call_during_a_takeover(engine: CallEngine) -> None:
    monitored = await start_monitored_call(engine, create_call(Model(), Transcriber(), end_call_silence_seconds=1))
    monitored.supervision.take_over(monitored.ada)
    await monitored.keep_attached(1.5)
    assert not monitored.holding.done()
    result = await monitored.hang_up()
    assert result.ended_reason is EndedReason.TAKEN_OVER


async def test_a_supervisor_who_reconnects_in_time_keeps_the_call(engine: CallEngine) -> None:
    monitored = await start_monitored_call(engine, create_call(Model(), Transcriber()))
    monitored.supervision.take_over(monitored.ada)
    ben, ada_again = uuid4(), uuid4()
    monitored.attach(ben, BEN)
    monitored.supervision.detach(monitored.ada)
    monitored.attach(uuid4(), BEN)
    monitored.attach(uuid4(), may_control=False)
    assert monitored.feed.states[-1].monitor_id == monitored.ada, (
        "neither somebody else nor a page of Ada's that may only follow"
    )
    with pytest.raises(SupervisionRefused, match="Ada has the call"):
        monitored.supervision.take_over(ben)
    monitored.attach(ada_again)
    for _ in range(2):
        await asyncio.sleep(0.6 * RECONNECT_SECONDS)
        monitored.attach(ada_again)
        monitored.attach(ben, BEN)
    assert monitored.feed.states[-1].monitor_id == ada_again
    with pytest.raises(SupervisionRefused, match="You do not have the call"):
        monitored.supervision.hand_back(monitored.ada)
    monitored.supervision.detach(ada_again)
    for _ in range(2):
        await asyncio.sleep(0.6 * RECONNECT_SECONDS)
        monitored.attach(ben, BEN)
    assert monitored.feed.states[-1].supervisor is None
    monitored.supervision.take_over(ben)
    assert monitored.feed.states[-1].supervisor == BEN
    await monitored.hang_up()


async def test_a_monitor_without_heartbeat_is_dropped(engine: CallEngine) -> None:
    monitored = await start_monitored_call(engine, create_call(Model(), Transcriber()))
    await monitored.keep_attached(LEASE_SECONDS + 1)
    assert not monitored.feed.closed
    await asyncio.sleep(LEASE_SECONDS + 1)
    assert monitored.feed.closed
    assert monitored.supervision.feed is None
    sent = len(monitored.feed.frames)
    await asyncio.sleep(STATE_INTERVAL_SECONDS)
    assert len(monitored.feed.frames) == sent, "a call that nobody follows sends nothing"
    await monitored.hang_up()


async def test_a_lost_supervisor_is_noticed_while_another_follows(engine: CallEngine) -> None:
    monitored = await start_monitored_call(engine, create_call(Model(), Transcriber()))
    monitored.supervision.take_over(monitored.ada)
    ben = uuid4()
    async with asyncio.timeout(60):
        while monitored.supervision.takeover is not None:
            monitored.attach(ben, BEN)
            await asyncio.sleep(0.05)
    assert monitored.feed.states[-1].supervisor is None
    await monitored.hang_up()


async def test_no_message_is_left_in_a_call_that_was_taken_over(engine: CallEngine) -> None:
    live = create_call(Model(), Transcriber(), greeting_message=GREETING)
    policy = VoicemailPolicy(action="leave_message", message="Please call back.")
    monitored = await start_monitored_call(
        engine, replace(live, direction="outbound", voicemail_policy=policy, judges_answer=True)
    )
    await monitored.socket.spoke.wait()
    monitored.supervision.take_over(monitored.ada)
    await monitored.keep_attached(0.2)
    session = engine.find_session(live.call_id)
    assert session is not None
    session.machine.handle_event(MachineEvent(greeting_over=True))
    await monitored.keep_attached(2)
    monitored.socket.hang_up()
    result = await monitored.holding
    assert (result.machine_answered, "Please call back." in str(result.transcript)) == (False, False)


async def test_voicemail_calls_cannot_be_taken_over(engine: CallEngine) -> None:
    monitored = await start_monitored_call(engine, replace(create_call(Model(), Transcriber()), voicemail=True))
    with pytest.raises(SupervisionRefused, match="answering machine"):
        monitored.supervision.take_over(monitored.ada)
    await monitored.hang_up()


async def test_a_supervisor_is_audible_even_if_transcription_fails(engine: CallEngine) -> None:
    class Deaf(Transcriber):
        async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
            if self.texts == ["gone"]:
                raise ProviderError("no transcription today")
            return await super().transcribe(request)

    deaf = Deaf()
    monitored = await start_monitored_call(engine, create_call(Model(), deaf))
    await asyncio.sleep(0.1)
    deaf.texts = ["gone"]
    monitored.supervision.take_over(monitored.ada)
    await monitored.speak("Can you hear me?")
    assert not monitored.holding.done()
    agent_channel = np.frombuffer(bytes(monitored.feed.frames), dtype="<i2").reshape(-1, 2)[:, 1]
    assert np.abs(agent_channel.astype(int)).max() > 1000, "the other monitors hear the person on the agent's side"
    await monitored.hang_up()
