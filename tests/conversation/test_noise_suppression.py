"""Noise suppression in the call engine: it removes noise in order, and holds no call up."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Event

import numpy as np
import pytest
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.speech.noise_suppression import MAX_WAIT_SECONDS, THREADS, NoiseSuppressor
from switchboard.engine.conversation.speech.rnnoise import RNNoiseStream
from switchboard.plugin_sdk.audio import Samples, decode_audio, encode_audio

from tests.fixtures.conversation import Model, Socket, Transcriber, create_call, list_transcript, synthesize_caller
from tests.fixtures.eventually import eventually


def make_noise(seconds: float) -> bytes:
    samples: Samples = np.random.default_rng(1).normal(0, 1000, round(seconds * 8000)).astype(np.int16)
    return encode_audio(samples, "mulaw")


def measure_level(audio: bytes) -> float:
    return float(np.sqrt(np.mean(np.square(decode_audio(audio, "mulaw").astype(float)))))


@dataclass
class Line:
    """A suppressor with a clock that the test sets, and what it has handed on."""

    now: float = 0.0
    received: bytearray = field(default_factory=bytearray)

    @asynccontextmanager
    async def suppress(self) -> AsyncIterator[NoiseSuppressor]:
        suppressor = NoiseSuppressor("mulaw", lambda: self.now, self.received.extend)
        running = asyncio.create_task(suppressor.run())
        yield suppressor
        running.cancel()

    async def wait_for(self, count: int) -> bytes:
        """Wait until this much audio has been handed on, and return it."""

        async def count_received() -> int:
            return len(self.received)

        await eventually(count_received, lambda received: received >= count)
        return bytes(self.received)


async def test_noise_is_suppressed_whatever_the_carriers_frames_are() -> None:
    noise, line = make_noise(2.0), Line()
    async with line.suppress() as suppressor:
        for at in range(0, len(noise), 130):
            suppressor.add_audio(noise[at : at + 130])
        received = await line.wait_for(len(noise))
    assert len(received) == len(noise)
    assert measure_level(received[-4000:]) < measure_level(noise) / 10


async def test_audio_that_waits_too_long_is_handed_on_with_its_noise_and_in_order() -> None:
    noise, line = make_noise(1.0), Line()
    first, second, third = noise[:160], noise[160:1760], noise[1760:]
    released = Event()
    held = [THREADS.submit(released.wait) for _ in range(64)]
    try:
        async with line.suppress() as suppressor:
            suppressor.add_audio(first)
            await asyncio.sleep(0)
            suppressor.add_audio(second)
            line.now = MAX_WAIT_SECONDS + 0.1
            released.set()
            received = await line.wait_for(len(first + second))
            assert received[len(first) :] == second
            suppressor.add_audio(third)
            received = await line.wait_for(len(noise))
    finally:
        released.set()
        await asyncio.gather(*map(asyncio.wrap_future, held))
    assert received[len(first + second) :] != third


def test_a_part_of_a_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="100 samples"):
        RNNoiseStream().suppress(np.zeros(100, dtype=np.int16))


async def test_a_call_goes_on_without_the_library(engine: CallEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyrnnoise", None)
    socket = Socket()
    call = create_call(Model("Certainly."), Transcriber("A cake please."), noise_suppression="rnnoise")
    running = asyncio.create_task(engine.run_call(call, socket))
    await socket.say(synthesize_caller("a cake please"))
    async with asyncio.timeout(60):
        await socket.spoke.wait()
    socket.hang_up()
    assert ("user", "A cake please.") in list_transcript(await running)
