"""Callers of `engine_server.py`, and the lateness of the audio that they hear.

A message's lateness is its delay against the first message of its reply plus the audio in between; negative values are
ahead of time.
"""

import asyncio
import base64
import json
import time
from dataclasses import dataclass, field

import aiohttp
import numpy as np
from switchboard.plugin_sdk.audio import encode_audio
from switchboard_offline.espeak import speak_text

PORT = 18_100
WARM_SECONDS, COUNTED_SECONDS = 6.0, 10.0
FRAME_SECONDS, GROUPS = 0.02, 10
PAUSE_SECONDS = 7.0
NEW_REPLY_SECONDS = 0.5


@dataclass(slots=True)
class ReplyClock:
    """Lateness of the audio of an agent's replies."""

    began: float = 0.0
    audio_seconds: float = 0.0

    def measure_lateness(self, moment: float, length: int) -> float:
        """Return the milliseconds by which a message with so many bytes of audio is late."""
        if moment > self.began + self.audio_seconds + NEW_REPLY_SECONDS:
            self.began, self.audio_seconds = moment, 0.0
        late = (moment - self.began - self.audio_seconds) * 1000
        self.audio_seconds += length / 8000
        return late


@dataclass(slots=True)
class Call:
    """One caller: its position in the speech, and the lateness of the agent's audio in milliseconds."""

    socket: aiohttp.ClientWebSocketResponse
    position: int
    reply: ReplyClock = field(default_factory=ReplyClock)
    lateness: list[float] = field(default_factory=list)


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
            late = call.reply.measure_lateness(moment, len(parsed["media"]["payload"]) * 3 // 4)
            if moment >= measured_from:
                call.lateness.append(late)
