"""Recordings of calls: both voices in their places, whole files, and a disk that is full."""

import asyncio
import threading
import wave
from pathlib import Path

import numpy as np
import pytest
from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.media.recording import HOLD_BACK_SAMPLES, Recording
from switchboard.plugin_sdk.audio import decode_audio, encode_audio

from tests.fixtures.conversation import Model, Socket, Transcriber, create_call, synthesize_caller

pytestmark = pytest.mark.usefixtures("task_check")


async def test_a_recording_has_one_channel_per_party(engine: CallEngine, tmp_path: Path) -> None:
    socket, path = Socket(), tmp_path / "calls" / "one.wav"
    live = create_call(Model("A good answer."), Transcriber("hello"), recording=path)
    running = asyncio.create_task(engine.run_call(live, socket))
    await socket.say(synthesize_caller("Hello, is there anybody"))
    await socket.spoke.wait()
    await socket.say(b"")
    socket.hang_up()
    await running
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, 2).astype(int)
    channel_bytes = int(8000 * 0.8)
    assert np.abs(samples[:channel_bytes, 0]).max() > 1000 > np.abs(samples[:channel_bytes, 1]).max()
    assert np.abs(samples[:, 1]).max() > 1000


async def test_a_late_call_is_recorded_from_its_beginning(engine: CallEngine, tmp_path: Path) -> None:
    """Audio from before the call was taken arrives in one burst; it and everything after it are recorded in place."""
    socket, path, before = Socket(), tmp_path / "call.wav", synthesize_caller("Hello, is there anybody?")
    await socket.say(before)
    running = asyncio.create_task(engine.run_call(create_call(Model(), Transcriber(), recording=path), socket))
    await socket.say(synthesize_caller("Goodbye"))
    socket.hang_up()
    result, seconds = await running, asyncio.get_running_loop().time() - socket.opened_at
    assert abs(result.duration_seconds - seconds) < 0.5
    with wave.open(str(path)) as recorded:
        assert abs(recorded.getnframes() / 8000 - result.duration_seconds) < 0.5
        caller = np.abs(np.frombuffer(recorded.readframes(recorded.getnframes()), dtype="<i2")[::2])
    assert (caller[:4000].max() > 1000, caller[-12000:].max() > 1000) == (True, True)
    assert caller[len(before) + 1000 : len(before) + 3500].max() < 1000, "between the two nothing was said"


async def test_a_full_disk_drops_the_recording_and_not_the_call(engine: CallEngine, tmp_path: Path) -> None:
    socket, path = Socket(), tmp_path / "call.wav"
    path.symlink_to("/dev/full")  # accepts no byte
    running = asyncio.create_task(
        engine.run_call(create_call(Model("A good answer."), Transcriber("hello"), recording=path), socket)
    )
    for _ in range(3):
        await socket.say(synthesize_caller("Hello, is there anybody"))
    await socket.spoke.wait()
    socket.hang_up()
    result = await running
    assert (result.ended_reason, result.error_message) == (EndedReason.CALLER_HUNG_UP, None)
    assert (result.recording_path, result.recording_error) == (None, "No space left on device")
    assert not path.is_symlink()


async def test_delayed_audio_is_recorded_at_its_time(tmp_path: Path) -> None:
    """Of eight seconds of caller audio, the fourth and fifth arrive at once, after two seconds without audio."""
    recording = Recording(tmp_path / "call.wav", "mulaw")
    original = encode_audio((np.arange(64_000) // 400 * 50).astype(np.int16), "mulaw")
    for position in range(160, 64_160, 160):
        if not 24_000 < position <= 39_840:
            late = range(24_160, 40_160, 160) if position == 40_000 else (position,)
            for end in late:
                recording.add_caller_audio(original[end - 160 : end], position)
        if position % 8000 == 0:
            await recording.write(position)
    await recording.close(64_000)
    with wave.open(str(tmp_path / "call.wav")) as recorded:
        recorded_samples = np.frombuffer(recorded.readframes(64_000), dtype="<i2")[::2]
    assert np.array_equal(recorded_samples, decode_audio(original, "mulaw"))


async def test_a_recording_is_complete_after_an_abandoned_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, go_on = Recording(tmp_path / "call.wav", "mulaw"), threading.Event()
    append = recording._append

    def wait_and_append(data: bytes) -> None:
        go_on.wait(5)
        append(data)

    monkeypatch.setattr(recording, "_append", wait_and_append)
    recording.add_caller_audio(bytes(8000), 0)
    writing = asyncio.create_task(recording.write(8000 + HOLD_BACK_SAMPLES))
    for _ in range(3):
        await asyncio.sleep(0)
    writing.cancel()
    closing = asyncio.create_task(recording.close(8000))
    await asyncio.wait({writing})
    go_on.set()
    await closing
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert file.getnframes() == 8000


async def test_a_closed_recording_is_not_restarted(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "call.wav", "mulaw")
    recording.add_caller_audio(bytes(8000), 0)
    await recording.close(8000)
    await recording.write(16_000)
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert file.getnframes() == 8000
