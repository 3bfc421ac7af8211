"""Lifetime of a call: a failure, a hang-up and a cancellation end it in a defined way."""

import asyncio
from dataclasses import replace

import pytest
from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.session import CallSession
from switchboard.plugin_sdk import Frame, MediaCodec, MediaEvent, ProviderError, UnsupportedAudio

from tests.fixtures.conversation import Leg, Model, Socket, Transcriber, create_call, synthesize_caller

pytestmark = pytest.mark.usefixtures("task_check")
GREETING = "Hello, how can I help you?"
WORDS = synthesize_caller("Please call me again tomorrow")


class GoneSocket(Socket):
    """A socket that fails when the agent speaks."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def send(self, message: Frame) -> None:
        raise self._error


class StoppedSocket(Socket):
    """A socket whose only message is that the stream is over."""

    def __init__(self) -> None:
        super().__init__()
        self._messages: list[Frame] = ['{"event": "stop"}']

    async def receive(self) -> Frame | None:
        return self._messages.pop() if self._messages else None


async def test_a_caller_may_hang_up_before_the_audio_starts(engine: CallEngine) -> None:
    socket, leg = StoppedSocket(), Leg()
    result = await engine.run_call(create_call(Model(), Transcriber(), leg=leg), socket)
    assert (result.ended_reason, result.error_message) == (EndedReason.CALLER_HUNG_UP, None)
    assert leg.done == []
    assert socket.closed.is_set()


async def test_a_call_that_was_ended_before_its_audio_starts_keeps_its_reason(engine: CallEngine) -> None:
    live = create_call(Model(), Transcriber())
    engine.end_call(live.call_id, EndedReason.CANCELED)
    assert (await engine.run_call(live, StoppedSocket())).ended_reason is EndedReason.CANCELED


@pytest.mark.parametrize(
    ("error", "reason", "actions"),
    [
        (ConnectionError("gone"), EndedReason.CALLER_HUNG_UP, []),
        (ProviderError("refused"), EndedReason.PROVIDER_FAILED, ["hang_up"]),
        (RuntimeError("a mistake"), EndedReason.ERROR, ["hang_up"]),
    ],
)
async def test_a_failed_task_ends_the_call_after_the_others_finish(
    engine: CallEngine, error: Exception, reason: EndedReason, actions: list[str]
) -> None:
    socket, leg = GoneSocket(error), Leg()
    result = await engine.run_call(create_call(Model(), Transcriber(), leg=leg, greeting_message=GREETING), socket)
    assert result.ended_reason is reason
    assert leg.done == actions
    assert socket.closed.is_set()


async def test_a_socket_that_closes_is_a_failure_if_the_carrier_announces_ends(engine: CallEngine) -> None:
    for announces, reason in ((False, EndedReason.CALLER_HUNG_UP), (True, EndedReason.PROVIDER_FAILED)):
        socket, live = Socket(), create_call(Model(), Transcriber())
        live.codec.announces_end = announces
        running = asyncio.create_task(engine.run_call(live, socket))
        await socket.say(WORDS)
        socket.hang_up()
        assert (await running).ended_reason is reason


async def test_the_last_words_before_a_hang_up_are_transcribed(engine: CallEngine) -> None:
    socket = Socket()
    running = asyncio.create_task(engine.run_call(create_call(Model(), Transcriber("call me tomorrow")), socket))
    speaking = asyncio.create_task(socket.say(WORDS))
    await asyncio.sleep(len(WORDS) / 8000 - 0.1)
    socket.hang_up()
    speaking.cancel()
    transcript = (await running).transcript
    assert [(entry.role, entry.content) for entry in transcript] == [("user", "call me tomorrow")]


async def test_cancellation_of_a_call_leaves_no_task_behind(engine: CallEngine) -> None:
    socket = Socket()
    running = asyncio.create_task(
        engine.run_call(create_call(Model(), Transcriber(), greeting_message=GREETING), socket)
    )
    await socket.spoke.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_call_that_fails_at_a_tick_ends_and_does_not_stop_the_others(
    engine: CallEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, other = (create_call(Model(), Transcriber()) for _ in range(2))
    tick = CallSession.tick

    def fail_first(session: CallSession, now: float) -> None:
        if session is engine.find_session(failing.call_id):
            raise KeyError("a bug")
        tick(session, now)

    monkeypatch.setattr(CallSession, "tick", fail_first)
    sockets = Socket(), Socket()
    running = [
        asyncio.create_task(engine.run_call(live, socket))
        for live, socket in zip((failing, other), sockets, strict=True)
    ]
    async with asyncio.timeout(60):
        assert (await running[0]).ended_reason is EndedReason.ERROR
        sockets[1].hang_up()
        assert (await running[1]).ended_reason is EndedReason.CALLER_HUNG_UP


class UndecodableCodec(MediaCodec):
    """Codec of a stream whose audio cannot be decoded."""

    def decode(self, message: Frame) -> bytes | MediaEvent | None:
        raise UnsupportedAudio("The carrier streams OPUS, which cannot be decoded.")

    def encode(self, audio: bytes) -> Frame:
        return ""

    def clear(self) -> Frame:
        return ""

    def mark(self, name: str) -> Frame:
        return ""


async def test_audio_that_cannot_be_decoded_ends_the_call_at_once_with_the_reason(engine: CallEngine) -> None:
    leg = Leg()
    live = replace(create_call(Model(), Transcriber(), leg=leg), codec=UndecodableCodec())
    async with asyncio.timeout(1):
        result = await engine.run_call(live, Socket())
    assert (result.ended_reason, leg.done) == (EndedReason.ERROR, ["hang_up"])
    assert result.error_message == "The carrier streams OPUS, which cannot be decoded."
