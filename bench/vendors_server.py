"""Vendors that respond after fixed times, and record the times of requests and responses: Deepgram's STT, OpenAI's
chat, ElevenLabs' TTS.

A call's number is the end of the transcriber's and the voice's names and of the model's prompt, so each request can be
assigned to a turn of a call. All calls use one model with a known price, because a library's caches would not fit one
model per call.
"""

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
from aiohttp import WSMsgType, web
from switchboard.plugin_sdk.audio import decode_audio, encode_audio
from switchboard_offline.espeak import speak_text

MODEL: Final = "gpt-4o-mini"
HEARING_SECONDS: Final = 0.15
THINKING_SECONDS: Final = 0.3
SPEAKING_SECONDS: Final = 0.15
TRANSCRIPT: Final = "what are your opening hours"
ANSWER: Final = "We open at seven.", " See", " you soon."
ANALYSIS: Final = (
    '{"summary": "The caller asked for the hours.", "successful": true,',
    ' "sentiment": "neutral", "extracted_data": []}',
)
TOKEN_SECONDS: Final = 0.02
FIRST_BYTES: Final = 3200


@dataclass(slots=True)
class Turn:
    """Times of one turn by the machine's clock: the caller's audio, each vendor's request and response, and the
    answer.
    """

    last_word: float = 0.0
    over: float = 0.0
    stt_asked: float = 0.0
    stt_answered: float = 0.0
    llm_asked: float = 0.0
    llm_answered: float = 0.0
    tts_asked: float = 0.0
    tts_answered: float = 0.0
    heard: float = 0.0

    def record(self, moment: str) -> None:
        """Record the time of a step; the first time counts, and none before the end of the turn."""
        if self.over and not getattr(self, moment):
            setattr(self, moment, time.perf_counter())

    @property
    def is_answered(self) -> bool:
        """Return whether the vendors were asked and the caller heard the answer, all before the next question."""
        return bool(self.stt_asked and self.llm_asked and self.tts_asked and self.heard)

    @property
    def steps(self) -> tuple[float, float, float, float]:
        """Milliseconds until the STT request, the LLM request, the TTS request, and until the caller hears audio."""
        return (
            (self.stt_asked - self.over) * 1000,
            (self.llm_asked - self.stt_answered) * 1000,
            (self.tts_asked - self.llm_answered) * 1000,
            (self.heard - self.tts_answered) * 1000,
        )

    @property
    def own_ms(self) -> float:
        """Latency of the platform after the silence that ends a turn has passed."""
        return sum(self.steps)

    @property
    def from_last_word_ms(self) -> float:
        """Latency of the platform including that silence."""
        return self.own_ms + (self.over - self.last_word) * 1000


class Vendors:
    """All three vendors. `turns` has the current turn of each call."""

    def __init__(self, calls: int) -> None:
        self.turns = [Turn() for _ in range(calls)]
        samples = (np.frombuffer(speak_text(ANSWER[0]), dtype="<i2") * 0.5).astype(np.int16)
        self._speech = encode_audio(samples, "mulaw")

    @asynccontextmanager
    async def serve(self, port: int) -> AsyncIterator[None]:
        application = web.Application()
        application.router.add_get("/v1/listen", self._listen)
        application.router.add_post("/v1/chat/completions", self._chat)
        application.router.add_post("/v1/text-to-speech/{voice}/stream/with-timestamps", self._speak)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield
        finally:
            await runner.cleanup()

    def _turn(self, name: str) -> Turn:
        return self.turns[int(name.rpartition("-")[2])]

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        socket, heard, done = web.WebSocketResponse(), 0, 0.0
        await socket.prepare(request)
        width = 1 if request.query["encoding"] == "mulaw" else 2
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                heard += len(message.data)
            elif message.type is WSMsgType.TEXT and "Finalize" in message.data:
                turn = self._turn(request.query["model"])
                turn.record("stt_asked")
                await asyncio.sleep(HEARING_SECONDS)
                seconds = heard / width / 8000
                await socket.send_json(_results(done, seconds - done))
                done = seconds
                turn.record("stt_answered")
        return socket

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        is_analysis = "response_format" in body or "JSON schema" in body["messages"][0]["content"]
        turn = Turn() if is_analysis else self._turn(body["messages"][0]["content"])
        first, *others, last = ANALYSIS if is_analysis else ANSWER
        turn.record("llm_asked")
        await asyncio.sleep(THINKING_SECONDS)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        usage = {"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}
        ends: dict[str, object] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        with suppress(ConnectionResetError):  # an engine that is interrupted hangs up
            await response.prepare(request)
            await response.write(_events(*(_delta(role="assistant", content=words) for words in ("", first, *others))))
            turn.record("llm_answered")
            await asyncio.sleep(TOKEN_SECONDS)
            await response.write(_events(_delta(content=last)))
            await asyncio.sleep(TOKEN_SECONDS)
            await response.write(_events(ends, {"choices": [], "usage": usage}) + b"data: [DONE]\n\n")
        return response

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        turn, text = self._turn(request.match_info["voice"]), str((await request.json())["text"]).strip()
        turn.record("tts_asked")
        await asyncio.sleep(SPEAKING_SECONDS)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        audio = (
            self._speech
            if request.query["output_format"] == "ulaw_8000"
            else decode_audio(self._speech, "mulaw").tobytes()
        )
        times = [at * 0.05 for at in range(len(text) + 1)]
        alignment = {
            "characters": list(text),
            "character_start_times_seconds": times[:-1],
            "character_end_times_seconds": times[1:],
        }
        first, rest = audio[:FIRST_BYTES], audio[FIRST_BYTES:]
        with suppress(ConnectionResetError):
            await response.prepare(request)
            await response.write(_line(first, alignment))
            turn.record("tts_answered")
            await response.write(_line(rest, None))
        return response


def _results(start: float, duration: float) -> dict[str, object]:
    words = [{"word": word, "start": start, "end": start + duration, "confidence": 0.9} for word in TRANSCRIPT.split()]
    return {
        "type": "Results",
        "channel_index": [0, 1],
        "start": start,
        "duration": duration,
        "is_final": True,
        "speech_final": True,
        "from_finalize": True,
        "channel": {"alternatives": [{"transcript": TRANSCRIPT, "confidence": 0.9, "words": words}]},
        "metadata": {"request_id": "r", "model_uuid": "m", "model_info": {"name": "m", "version": "1", "arch": "a"}},
    }


def _delta(**delta: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _events(*pieces: dict[str, object]) -> bytes:
    results = [
        json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **piece})
        for piece in pieces
    ]
    return "".join(f"data: {piece}\n\n" for piece in results).encode()


def _line(audio: bytes, alignment: dict[str, object] | None) -> bytes:
    return json.dumps({"audio_base64": b64encode(audio).decode(), "alignment": alignment}).encode() + b"\n"
