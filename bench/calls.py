"""Benchmark of the number of live calls that one core can run. Audio goes both ways in real time over the media
socket's wire format, with real voice activity detection, recording, transcript, and providers that respond at once. The
load comes from the other core.

A run passes if the 99th percentile of the lateness of outgoing audio is under 20 ms. A message's lateness is its delay
against the first message of its reply plus the audio in between; negative values are ahead of time.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import numpy as np
import uvloop
from switchboard.plugin_sdk.audio import encode_audio
from switchboard_offline.espeak import speak_text

PORT = 18_100
STEPS = (100, 150, 200, 250, 300, 350, 400, 450, 500)
WARM_SECONDS, COUNTED_SECONDS = 6.0, 10.0
FRAME_SECONDS, GROUPS = 0.02, 10
LIMIT_MS = 20.0
PAUSE_SECONDS = 7.0
NEW_REPLY_SECONDS = 0.5


@dataclass(slots=True)
class Call:
    """One caller: its position in the speech, and the arrival times of the agent's audio."""

    socket: aiohttp.ClientWebSocketResponse
    position: int
    reply_began: float = 0.0
    audio_seconds: float = 0.0
    lateness: list[float] = field(default_factory=list)

    def record_arrival(self, moment: float, length: int, *, is_measured: bool) -> None:
        if moment > self.reply_began + self.audio_seconds + NEW_REPLY_SECONDS:
            self.reply_began, self.audio_seconds = moment, 0.0
        if is_measured:
            self.lateness.append((moment - self.reply_began - self.audio_seconds) * 1000)
        self.audio_seconds += length / 8000


def build_frames() -> list[str]:
    """Build the messages that a caller repeats: a sentence, and silence for the answer."""
    samples = (
        np.frombuffer(speak_text("Hello, could you tell me what your opening hours are please?"), dtype="<i2") * 0.5
    ).astype(np.int16)
    audio = encode_audio(samples, "mulaw") + b"\xff" * int(PAUSE_SECONDS * 8000)
    pieces = [audio[at : at + 160] for at in range(0, len(audio) - 159, 160)]
    return [json.dumps({"event": "media", "media": {"payload": base64.b64encode(piece).decode()}}) for piece in pieces]


async def run_calls(number: int, script: list[str], *, port: int = PORT) -> list[float]:
    """Run a number of calls and return the lateness of every message in milliseconds."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        calls = []
        for index in range(number):
            socket = await session.ws_connect(f"ws://127.0.0.1:{port}/media/{index}")
            start = {"call_id": str(index), "stream_id": "s", "encoding": "mulaw", "sample_rate": 8000}
            await socket.send_str(json.dumps({"event": "start", "start": start}))
            calls.append(Call(socket, index * 37 % len(script)))
        started_at = time.perf_counter()
        measured_from = started_at + WARM_SECONDS
        listeners = [asyncio.create_task(listen(call, measured_from)) for call in calls]
        await speak_all(calls, script, started_at + WARM_SECONDS + COUNTED_SECONDS)
        for call in calls:
            await call.socket.close()
        await asyncio.gather(*listeners, return_exceptions=True)
        return [late for call in calls for late in call.lateness]


async def speak_all(calls: list[Call], script: list[str], until: float) -> None:
    """Send audio for a tenth of the calls every two milliseconds, at absolute times."""
    due, group = time.perf_counter(), 0
    while due < until:
        for call in calls[group::GROUPS]:
            await call.socket.send_str(script[call.position])
            call.position = (call.position + 1) % len(script)
        group = (group + 1) % GROUPS
        due += FRAME_SECONDS / GROUPS
        await asyncio.sleep(max(0.0, due - time.perf_counter()))


async def listen(call: Call, measured_from: float) -> None:
    async for message in call.socket:
        moment = time.perf_counter()
        text = message.data
        if isinstance(text, str) and '"media"' in text[:20]:
            parsed = json.loads(text)
            call.record_arrival(moment, len(parsed["media"]["payload"]) * 3 // 4, is_measured=moment >= measured_from)


def cpu_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def rss_megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def run() -> None:
    """Print the table, up to the first number that fails."""
    cores = sorted(os.sched_getaffinity(0))
    script = build_frames()
    print("calls | p50 late ms | p99 late ms | CPU % of a core | CPU %/call | RSS MB/call")
    largest = 0
    for number in STEPS:
        server = subprocess.Popen(
            [sys.executable, "-m", "bench.calls_server", str(PORT), str(cores[0])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.sched_setaffinity(0, {cores[-1]})
        try:
            time.sleep(2.5)
            before, cpu = rss_megabytes(server.pid), cpu_seconds(server.pid)
            started_at = time.perf_counter()
            late = uvloop.run(run_calls(number, script))
            cpu_percent = (cpu_seconds(server.pid) - cpu) / (time.perf_counter() - started_at) * 100
            growth = (rss_megabytes(server.pid) - before) / number
        finally:
            os.sched_setaffinity(0, set(cores))
            server.kill()
            server.wait()
        p50, p99 = np.percentile(late, [50, 99])
        print(
            f"{number:5} | {p50:11.1f} | {p99:11.1f} | {cpu_percent:15.0f} | {cpu_percent / number:10.2f} | "
            f"{growth:11.2f}",
            flush=True,
        )
        if p99 >= LIMIT_MS:
            break
        largest = number
    print(f"\nlargest number of calls on one core with p99 lateness under {LIMIT_MS:.0f} ms: {largest}")
