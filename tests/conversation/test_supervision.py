"""Supervision of live calls, on real audio with the real voice activity detection."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import numpy as np
import pytest
from switchboard.engine.conversation.call import CallResult, EndedReason, LiveCall, Supervisor, TranscriptEntry
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.handoff import supervision as supervision_module
from switchboard.engine.conversation.handoff.supervision import Supervision, SupervisionRefused, SupervisionState
from switchboard.plugin_sdk import ProviderError, SpeechToTextStream, TranscriptionRequest
from switchboard.plugin_sdk.audio import decode_audio

from tests.fixtures.conversation import Log, Model, Socket, Speech, Transcriber, call, voice

ADA = Supervisor(uuid4(), "Ada")
BEN = Supervisor(uuid4(), "Ben")
VIRTUAL_CLOCK = True
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

    def send_state(self, state: SupervisionState) -> None:
        self.states.append(state)

    def send_entries(self, first: int, entries: Sequence[TranscriptEntry]) -> None:
        self.seen += enumerate(entries, first)

    def send_end(self, reason: EndedReason) -> None:
        self.over = reason

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class Held:
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
        async with asyncio.timeout(20):
            return await self.holding


def voice_pcm(text: str) -> bytes:
    return decode_audio(voice(text), "mulaw").tobytes()


async def held(engine: CallEngine, live: LiveCall) -> Held:
    socket, feed, ada = Socket(), Feed(), uuid4()
    holding = asyncio.create_task(engine.run_call(live, socket))
    async with asyncio.timeout(20):
        while (session := engine.find_session(live.call_id)) is None:  # noqa: ASYNC110 - the engine has no event for it
            await asyncio.sleep(0)
    one = Held(live, socket, session.supervision, feed, ada, holding)
    one.attach(ada)
    return one


def said(result: CallResult) -> list[tuple[str, str, bool]]:
    return [(entry.role, entry.content, entry.by_person) for entry in result.transcript if entry.role != "system"]


async def test_a_takeover_silences_the_agent_at_once_and_the_agent_goes_on_knowing_what_was_said(
    engine: CallEngine,
) -> None:
    model = Model("As my colleague said.")
    one = await held(engine, call(model, Transcriber("let me help you", "thank you"), greeting_message=GREETING))
    await one.socket.spoke.wait()
    await one.keep_attached(0.5)
    one.supervision.take_over(one.ada)
    await asyncio.sleep(0.05)
    assert one.socket.cleared_at is not None
    assert one.socket.audio_after_clear == 0
    await one.speak("Let me help you with that.")
    assert one.socket.audio_after_clear > 0
    await one.socket.say(voice("Thank you very much."))
    assert not model.asked, "the model is not asked"
    one.supervision.hand_back(one.ada)
    await one.keep_attached(1.0)
    result = await one.hang_up()
    greeting, *rest = said(result)
    assert GREETING.startswith(greeting[1])
    assert rest == [
        ("agent", "let me help you", True),
        ("user", "thank you", False),
        ("agent", "As my colleague said.", False),
    ]
    history = [(message.role, message.content) for message in model.asked[0].messages]
    assert history[-4:-1] == [
        ("system", supervision_module.TAKEN_OVER_INSTRUCTION),
        ("assistant", "let me help you"),
        ("user", "thank you"),
    ]
    assert history[-1] == ("system", supervision_module.HANDED_BACK_INSTRUCTION)
    assert isinstance(one.live.log, Log)
    assert one.live.log.holders == [ADA, None]
    assert [entry for _, entry in one.feed.seen] == list(result.transcript), "each entry once, in order"
    assert one.feed.over is EndedReason.CALLER_HUNG_UP
    assert one.feed.closed
    assert result.usage.speech_to_text_seconds > 2.0, "both voices were transcribed"


async def test_a_whisper_reaches_the_model_and_never_the_caller(engine: CallEngine) -> None:
    speech, model = Speech(), Model("Gladly.")
    one = await held(engine, replace(call(model, Transcriber("how much is it")), text_to_speech=speech))
    one.supervision.whisper("Offer ten percent off.")
    await one.socket.say(voice("How much is it then?"))
    await one.socket.spoke.wait()
    await one.hang_up()
    assert any(
        "Offer ten percent off." in message.content for message in model.asked[0].messages if message.role == "system"
    )
    assert [request.text for request in speech.asked] == ["Gladly."]


async def test_silence_does_not_end_a_call_during_a_takeover(engine: CallEngine) -> None:
    one = await held(engine, call(Model(), Transcriber(), end_call_silence_seconds=1))
    one.supervision.take_over(one.ada)
    await one.keep_attached(1.5)
    assert not one.holding.done()
    result = await one.hang_up()
    assert result.ended_reason is EndedReason.TAKEN_OVER


async def test_a_supervisor_who_reconnects_in_time_still_has_the_call(
    engine: CallEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision_module, "RECONNECT_SECONDS", 0.6)
    one = await held(engine, call(Model(), Transcriber()))
    one.supervision.take_over(one.ada)
    ben, ada_again = uuid4(), uuid4()
    one.attach(ben, BEN)
    one.supervision.detach(one.ada)
    one.attach(uuid4(), BEN)
    one.attach(uuid4(), may_control=False)
    assert one.feed.states[-1].monitor_id == one.ada, "neither somebody else nor a page of Ada's that may only follow"
    with pytest.raises(SupervisionRefused, match="Ada has the call"):
        one.supervision.take_over(ben)
    one.attach(ada_again)
    await asyncio.sleep(0.8)
    assert one.feed.states[-1].monitor_id == ada_again
    with pytest.raises(SupervisionRefused, match="You do not have the call"):
        one.supervision.hand_back(one.ada)
    one.supervision.detach(ada_again)
    await asyncio.sleep(0.8)
    assert one.feed.states[-1].supervisor is None
    one.supervision.take_over(ben)
    assert one.feed.states[-1].supervisor == BEN
    await one.hang_up()


async def test_a_monitor_without_heartbeat_is_dropped(engine: CallEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision_module, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(supervision_module, "STATE_INTERVAL_SECONDS", 0.1)
    one = await held(engine, call(Model(), Transcriber()))
    await one.keep_attached(0.5)
    assert not one.feed.closed
    await asyncio.sleep(0.6)
    assert one.feed.closed
    assert one.supervision.feed is None
    sent = len(one.feed.frames)
    await asyncio.sleep(0.1)
    assert len(one.feed.frames) == sent, "a call that nobody follows sends nothing"
    await one.hang_up()


async def test_an_answering_machine_is_not_taken_over(engine: CallEngine) -> None:
    one = await held(engine, replace(call(Model(), Transcriber()), voicemail=True))
    with pytest.raises(SupervisionRefused, match="answering machine"):
        one.supervision.take_over(one.ada)
    await one.hang_up()


async def test_a_supervisor_is_heard_even_if_transcription_fails(engine: CallEngine) -> None:
    class Deaf(Transcriber):
        async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
            if self.texts == ["gone"]:
                raise ProviderError("no transcription today")
            return await super().transcribe(request)

    deaf = Deaf()
    one = await held(engine, call(Model(), deaf))
    await asyncio.sleep(0.1)
    deaf.texts = ["gone"]
    one.supervision.take_over(one.ada)
    await one.speak("Can you hear me?")
    assert not one.holding.done()
    heard = np.frombuffer(bytes(one.feed.frames), dtype="<i2").reshape(-1, 2)[:, 1]
    assert np.abs(heard.astype(int)).max() > 1000, "the other monitors hear the person on the agent's side"
    await one.hang_up()
