"""Benchmark of the latency that a platform adds to a reply.

The latency counts from the end of the caller's turn to the first audio out, without the vendors' time and the
configured silence. The calls run in real time over Twilio's wire format, with real voice activity detection, and
vendors on this machine that respond after fixed times (`vendors_server.py`). Pipecat runs with the same vendors,
parameters, and callers, in an environment of its own under `.bench/`, which the first run creates. A turn ends with the
frame that completes the configured silence; each platform's own detection finds it beforehand in the same audio.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import numpy as np
import uvloop
from switchboard.engine.conversation.speech.vad import WINDOW, SpeechChange, VoiceActivity, VoiceDetector
from switchboard.plugin_sdk.audio import Samples, decode_audio, encode_audio
from switchboard_offline.espeak import speak_text

from bench.vendors_server import Turn, Vendors

PORT, VENDORS_PORT = 18_200, 18_201
TURNS, PAUSE_SECONDS, LEAD_SECONDS = 10, 3.5, 1.5
CALLS: Final = (5, 20)
MANY_CALLS: Final = 100
FRAME, FRAME_SECONDS = 160, 0.02
SILENT: Final = 0xFF
QUIET: Final = 200
PIPECAT: Final = ("pipecat-ai[websocket,deepgram]==1.14.0", "uvicorn==0.54.0", "uvloop==0.23.0")
PIPECAT_HOME: Final = Path(".bench/pipecat")


@dataclass(frozen=True, slots=True)
class Script:
    """Audio of a caller who repeats a question.

    `words` are the frames with each question's last sound, and `ends` the frames that end its turn.
    """

    audio: bytes
    words: list[int]
    ends: list[int]


@dataclass(slots=True)
class Caller:
    """One call, and the turns that were answered."""

    number: int
    vendors: Vendors
    turns: list[Turn] = field(default_factory=list)
    slips: list[float] = field(default_factory=list)

    async def talk(self, session: aiohttp.ClientSession, script: Script) -> None:
        frames = [
            json.dumps(
                {
                    "event": "media",
                    "streamSid": "s",
                    "media": {"payload": base64.b64encode(script.audio[at : at + FRAME]).decode()},
                }
            )
            for at in range(0, len(script.audio), FRAME)
        ]
        async with session.ws_connect(f"ws://127.0.0.1:{PORT}/media/{self.number}") as socket:
            await socket.send_str(json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"}))
            await socket.send_str(json.dumps({"event": "start", "streamSid": "s", "start": _START}))
            listening = asyncio.create_task(self._listen(socket))
            due, words, ends = time.perf_counter(), set(script.words), set(script.ends)
            for index, frame in enumerate(frames):
                due += FRAME_SECONDS
                await asyncio.sleep(due - time.perf_counter())
                self.slips.append((time.perf_counter() - due) * 1000)
                if index in words:
                    self.vendors.turns[self.number] = Turn(last_word=time.perf_counter())
                if index in ends:
                    self.vendors.turns[self.number].over = time.perf_counter()
                await socket.send_str(frame)
            listening.cancel()

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            turn = self.vendors.turns[self.number]
            if '"media"' in str(message.data) and turn.tts_answered and not turn.heard:
                turn.record("heard")
                self.turns.append(turn)


_START: Final = {
    "accountSid": "a", "streamSid": "s", "callSid": "c", "tracks": ["inbound"], "customParameters": {"token": "token"},
    "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
}  # fmt: skip


def build_caller_audio() -> tuple[bytes, list[int]]:
    """Return a caller's audio, and the frames with each question's last sound."""
    question = (np.frombuffer(speak_text("What are your opening hours?"), dtype="<i2") * 0.5).astype(np.int16)
    question = question[: int(np.nonzero(np.abs(question) > QUIET)[0][-1]) + 1]
    audio, words = bytearray([SILENT] * int(LEAD_SECONDS * 8000)), []
    for _ in range(TURNS):
        audio += encode_audio(question, "mulaw")
        words.append((len(audio) - 1) // FRAME)
        audio += bytes([SILENT]) * int(PAUSE_SECONDS * 8000)
    return bytes(audio[: len(audio) // FRAME * FRAME]), words


def find_turn_ends(samples: Samples) -> list[int]:
    """Return the frames that end a turn for the call engine."""
    detector, activity, ends = VoiceDetector(), VoiceActivity(confidence=0.7, start_seconds=0.2, min_volume=0.6), []
    for at in range(0, len(samples) - WINDOW + 1, WINDOW):
        if detector.detect([activity], samples[None, at : at + WINDOW]) == [SpeechChange.STOPPED]:
            ends.append((at + WINDOW - 1) // FRAME)
    return ends


def install_pipecat() -> Path:
    """Return the Python interpreter with Pipecat, installed if needed. Raises `CalledProcessError` if that fails."""
    python = PIPECAT_HOME / "bin" / "python"
    ready = PIPECAT_HOME / "installed"
    if not ready.exists():
        venv.create(PIPECAT_HOME, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PIPECAT], check=True)
        ready.touch()
    return python


def find_pipecat_turn_ends(python: Path, samples: Samples) -> list[int]:
    """Return the frames that end a turn for Pipecat."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(samples.astype("<i2").tobytes())
        file.flush()
        process = subprocess.run(
            [python, "bench/pipecat_server.py", "ends", file.name], check=True, capture_output=True, text=True
        )
    ends: list[int] = json.loads(process.stdout)
    return ends


@dataclass(frozen=True, slots=True)
class Measurement:
    """Answered turns, and the lateness of the callers themselves, which shows a busy machine."""

    turns: list[Turn]
    slips: list[float]


async def measure(calls: int, script: Script) -> Measurement:
    """Run a number of calls, which start one after the other."""
    vendors = Vendors(calls)
    callers = [Caller(number, vendors) for number in range(calls)]
    async with (
        vendors.serve(VENDORS_PORT),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        asyncio.TaskGroup() as group,
    ):
        await _wait_until_ready(session)
        for caller in callers:
            group.create_task(caller.talk(session, script))
            await asyncio.sleep(PAUSE_SECONDS / calls)
    # The first answer of a process includes imports.
    return Measurement(
        [turn for caller in callers for turn in caller.turns[1:]], [slip for caller in callers for slip in caller.slips]
    )


async def _wait_until_ready(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{PORT}/"):
                    return
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.1)
            except aiohttp.ClientError:
                return


def measure_server(command: list[str | Path], calls: int, script: Script) -> Measurement:
    """Measure the calls of one server, which runs on one core, with callers and vendors on another."""
    cores = sorted(os.sched_getaffinity(0))
    server = subprocess.Popen(
        [*command, str(PORT), str(cores[0]), f"http://127.0.0.1:{VENDORS_PORT}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.sched_setaffinity(0, {cores[-1]})
    try:
        return uvloop.run(measure(calls, script))
    finally:
        os.sched_setaffinity(0, set(cores))
        server.kill()
        server.wait()


def report(name: str, calls: int, measurement: Measurement) -> None:
    turns = measurement.turns
    own, words = [turn.own_ms for turn in turns], [turn.from_last_word_ms for turn in turns]
    cells = [
        f"{name:11}", f"{calls:5}", f"{len(turns)}/{calls * (TURNS - 1)}".rjust(8),
        *(f"{np.percentile(values, share):7.1f}" for values in (own, words) for share in (50, 99)),
        " ".join(f"{step:5.1f}" for step in np.median([turn.steps for turn in turns], axis=0)),
        f"{np.percentile(measurement.slips, 99):8.1f}",
    ]  # fmt: skip
    print(" | ".join(cells), flush=True)


def run() -> None:
    """Print the table."""
    audio, words = build_caller_audio()
    samples = decode_audio(audio, "mulaw")
    own_command: list[str | Path] = [sys.executable, "-m", "bench.latency_server"]
    our_script = Script(audio, words, find_turn_ends(samples))
    engines = {"Switchboard": (own_command, our_script)}
    try:
        python = install_pipecat()
        engines["Pipecat"] = (
            [python, "bench/pipecat_server.py"],
            Script(audio, words, find_pipecat_turn_ends(python, samples)),
        )
    except subprocess.CalledProcessError as error:
        print(f"without Pipecat, which cannot be installed here: {error}")
    print(
        "milliseconds that a platform adds, without the vendors' 600; then with the silence that ends a turn; "
        "then by part:"
    )
    print(
        "until STT, LLM and TTS are asked, and until the caller hears the reply (medians); last, the lateness "
        "of the callers"
    )
    print(
        "platform    | calls | answered | own p50 |     p99 | +silence |    p99 | to STT, LLM, TTS, caller     "
        "| slip p99"
    )
    for calls in CALLS:
        for name, (command, script) in engines.items():
            report(name, calls, measure_server(command, calls, script))
    report("Switchboard", MANY_CALLS, measure_server(own_command, MANY_CALLS, our_script))
