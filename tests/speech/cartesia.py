"""Cartesia's server, from its published reference: contexts on a WebSocket, word times, pages of voices, and errors.

Transcription follows `STTManualFinalizeWebsocketResponse` and `STTErrorResponse` of
github.com/cartesia-ai/cartesia-python, August 2026.
"""

import json
from base64 import b64encode
from typing import Literal

from aiohttp import WSMsgType, web

from tests.speech.vendor import KEY, SpeechVendor, collect_synthesis, recognize_mulaw

VOICES = [f"f786b574-daa5-4673-aa0c-cbe3e8534c0{digit}" for digit in (2, 3, 4)]
TITLES = {
    401: "Unauthorized",
    402: "Credit limit reached",
    404: "Not found",
    429: "Too many requests",
    500: "Internal error",
}
CHUNK = 2000
TIMES = ("start", "end")
PAGE = 2


class Cartesia(SpeechVendor):
    """`faults` are the statuses with which the next texts are refused on their socket; `opened` counts sockets;
    `canceled` are contexts. Words of a continued context are timed from its start, or with `counts_from_sentences`
    from the sentence's. `answers`: a transcription is flushed on request. `word_form` is that of the words of
    transcripts: one entry for each, columns as in a voice's times, null, or another one. `raw_query` is the query of
    the last stream, and `audio_bytes` are those of all streams.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[int] = []
        self.orders: list[dict[str, object]] = []
        self.opened = 0
        self.canceled: list[str] = []
        self.counts_from_sentences = False
        self.answers = True
        self.word_form: Literal["entries", "columns", "null", "unknown"] = "entries"
        self.raw_query = ""
        self.audio_bytes = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/voices", self._voices),
            web.get("/voices/{voice}", self._voice),
            web.get("/tts/websocket", self._serve),
            web.get("/stt/websocket", self._listen),
        ]

    def has_key(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {KEY}" and "Cartesia-Version" in request.headers

    def refusal(self, status: int) -> web.Response:
        return web.json_response(_failure(status), status=status)

    async def _voices(self, request: web.Request) -> web.Response:
        after = request.query.get("starting_after")
        start = VOICES.index(after) + 1 if after else 0
        page = VOICES[start : start + PAGE]
        return web.json_response({"data": [_describe(voice) for voice in page], "has_more": start + PAGE < len(VOICES)})

    async def _voice(self, request: web.Request) -> web.Response:
        voice = request.match_info["voice"]
        return web.json_response(_describe(voice)) if voice in VOICES else self.refusal(404)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        socket = await self.socket(request)
        self.opened += 1
        spoken: dict[str, int] = {}
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                order = json.loads(message.data)
                if "cancel" in order:
                    self.canceled.append(order["context_id"])
                else:
                    await self._speak(socket, order, spoken)
        return socket

    async def _speak(self, socket: web.WebSocketResponse, order: dict[str, object], spoken: dict[str, int]) -> None:
        """Speak a text; `spoken` has the milliseconds so far of the contexts that continue."""
        self.orders.append(order)
        context, voice, settings = order["context_id"], order["voice"], order.get("generation_config", {})
        assert order["output_format"] == {"container": "raw", "encoding": "pcm_mulaw", "sample_rate": 8000}
        assert isinstance(voice, dict)
        assert isinstance(settings, dict)
        if self.faults or voice["id"] not in VOICES:
            await socket.send_json({**_failure(self.faults.pop(0) if self.faults else 404), "context_id": context})
            return
        before = 0 if self.counts_from_sentences else spoken.get(str(context), 0)
        audio, words = await collect_synthesis(str(order["transcript"]), float(settings.get("speed", 1)))
        shared = {"context_id": context, "status_code": 206, "done": False}
        for at in range(0, len(audio), CHUNK):
            if chunk_words := [word for word in words if at <= word.start_ms * 8 < at + CHUNK]:
                times = {
                    "words": [word.text for word in chunk_words],
                    "start": [(before + word.start_ms) / 1000 for word in chunk_words],
                    "end": [(before + word.end_ms) / 1000 for word in chunk_words],
                }
                await socket.send_json({"type": "timestamps", "word_timestamps": times, **shared})
            await socket.send_json(
                {"type": "chunk", "data": b64encode(audio[at : at + CHUNK]).decode(), "step_time": 1.0, **shared}
            )
        if order["continue"]:
            assert order["flush"]
            spoken[str(context)] = spoken.get(str(context), 0) + len(audio) // 8
            await socket.send_json({"type": "flush_done", "flush_done": True, "flush_id": 1, **shared})
        else:
            await socket.send_json({"type": "done", **shared, "done": True})

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        assert (request.query["encoding"], request.query["sample_rate"]) == ("pcm_mulaw", "8000")
        self.raw_query = request.rel_url.raw_query_string
        socket = await self.socket(request)
        if self.faults:
            await socket.send_json(_failure(self.faults.pop(0)))
            await socket.close()
            return socket
        audio, is_reported = bytearray(), False
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                audio += message.data
                self.audio_bytes += len(message.data)
                if len(audio) > 4000 and not is_reported:
                    is_reported = True
                    await socket.send_json(_chunk("ca", is_final=False))
            elif message.data == "finalize" and self.answers:
                await self._flush(socket, recognize_mulaw(bytes(audio)))
                audio.clear()
                is_reported = False
            elif message.data == "close":
                await socket.send_json({"type": "done", "request_id": "r"})
                await socket.close()
        return socket

    async def _flush(self, socket: web.WebSocketResponse, text: str) -> None:
        """Send the text in two final chunks, cut within a word."""
        for part in (text[:5], text[5:]) if text else ():
            await socket.send_json(self._change_words(_chunk(part, is_final=True)))
        await socket.send_json({"type": "flush_done", "request_id": "r"})

    def _change_words(self, chunk: dict[str, object]) -> dict[str, object]:
        words = chunk["words"]
        assert isinstance(words, list)
        columns = {name: [word[key] for word in words] for name, key in (("words", "word"), *((k, k) for k in TIMES))}
        forms: dict[str, object] = {"entries": words, "columns": [columns], "null": None, "unknown": [{"w": "can"}]}
        return {**chunk, "words": forms[self.word_form]}


def _chunk(text: str, *, is_final: bool) -> dict[str, object]:
    words = [{"word": word, "start": 0.5 + at / 10, "end": 0.6 + at / 10} for at, word in enumerate(text.split())]
    return {"type": "transcript", "request_id": "r", "text": text, "is_final": is_final, "words": words}


def _describe(voice: str) -> dict[str, object]:
    return {"id": voice, "name": "Katie", "language": "en", "gender": "feminine", "is_owner": False}


def _failure(status: int) -> dict[str, object]:
    title = TITLES.get(status, "Voice not found")
    code = title.lower().replace(" ", "_")
    return {
        "type": "error",
        "done": True,
        "title": title,
        "message": f"{title} for {KEY}.",
        "error_code": code,
        "status_code": status,
    }
