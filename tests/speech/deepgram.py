"""Deepgram's server, from its published reference: live transcription, speech, models, and errors."""

import asyncio
import json
from itertools import count

from aiohttp import WSMsgType, web

from tests.speech.flux import FluxSession
from tests.speech.vendor import KEY, SpeechVendor, collect_synthesis, recognize_mulaw

VOICES = ("aura-2-thalia-en", "aura-2-apollo-en")
MODELS = {
    "stt": [{"name": "general", "canonical_name": "nova-3", "languages": ["en", "en-US"]}],
    "tts": [
        {
            "name": voice.split("-")[2],
            "canonical_name": voice,
            "languages": ["en", "en-US"],
            "metadata": {"accent": "American", "tags": [tag]},
        }
        for voice, tag in zip(VOICES, ("feminine", "masculine"), strict=True)
    ],
}
CODES = {400: "Bad Request", 401: "INVALID_AUTH", 429: "TOO_MANY_REQUESTS", 500: "INTERNAL_SERVER_ERROR"}
NOTICEABLE_SECONDS = 0.2


class Deepgram(SpeechVendor):
    """`closing` is the reason with which the next Finalize closes the socket, without a confirmation.

    `ends_turns`: Flux ends turns by itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.closing: str | None = None
        self.ends_turns = True
        self.controls: list[str] = []
        self.control_came = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/projects", self._projects),
            web.get("/v1/models", self._models),
            web.get("/v1/listen", self._listen),
            web.get("/v2/listen", self._listen_by_turns),
            web.post("/v1/speak", self._speak),
        ]

    def has_key(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Token {KEY}"

    def refusal(self, status: int, message: str | None = None) -> web.Response:
        code = CODES[status]
        message = message or f"{code} with {KEY}."
        return web.json_response(
            {"err_code": code, "err_msg": message, "request_id": "r"}, status=status, headers={"dg-error": message}
        )

    async def _projects(self, _: web.Request) -> web.Response:
        return web.json_response({"projects": []})

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response(MODELS)

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        query, received = request.query, self.requests[-1]
        if query.get("model") not in VOICES or (
            query.get("encoding"),
            query.get("sample_rate"),
            query.get("container"),
        ) != ("mulaw", "8000", "none"):
            return self.refusal(400, "No such model/version combination found.")
        audio, _ = await collect_synthesis(str(received.body["text"]), float(query.get("speed", "1")))
        response = web.StreamResponse(headers={"Content-Type": "audio/mulaw"})
        await response.prepare(request)
        for at in range(0, len(audio), 1600):
            await response.write(audio[at : at + 1600])
        await response.write_eof()
        return response

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        if (request.query.get("encoding"), request.query.get("sample_rate")) != ("mulaw", "8000"):
            return self.refusal(400, "Bad Request: failed to process audio: corrupt or unsupported data")
        socket = await self.socket(request)
        await _Session(self, socket, tuple(request.query.getall("keyterm", []))).run()
        return socket

    async def _listen_by_turns(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        if not query["model"].startswith("flux-general-") or (query["encoding"], query["sample_rate"]) != (
            "mulaw",
            "8000",
        ):
            return self.refusal(400, "Bad Request: invalid query parameters")
        socket = await self.socket(request)
        session = FluxSession(socket, query, tuple(request.query.getall("keyterm", [])))
        session.ends = self.ends_turns
        await session.run()
        return socket


class _Session:
    def __init__(self, server: Deepgram, socket: web.WebSocketResponse, keyterms: tuple[str, ...]) -> None:
        self._server = server
        self._socket = socket
        self._keyterms = keyterms
        self._audio = bytearray()
        self._done = 0.0
        self._interims = count(1)

    async def run(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                self._audio += message.data
                if len(self._audio) >= 4000 * next(self._interims):
                    await self._results("can", is_final=False)
            elif message.type is WSMsgType.TEXT:
                await self._control(json.loads(message.data)["type"])

    async def _control(self, control: str) -> None:
        self._server.controls.append(control)
        self._server.control_came.set()
        if control == "CloseStream":
            await self._socket.send_json({"type": "Metadata", "request_id": "r", "duration": self._done, "channels": 1})
            await self._socket.close()
        elif control == "Finalize" and self._server.closing is not None:
            await self._socket.close(code=1011, message=self._server.closing.encode())
        elif control == "Finalize" and len(self._audio) >= NOTICEABLE_SECONDS * 8000:
            await self._results(recognize_mulaw(bytes(self._audio), self._keyterms), is_final=True)

    async def _results(self, text: str, *, is_final: bool) -> None:
        seconds = len(self._audio) / 8000
        words = [
            {
                "word": word,
                "punctuated_word": word,
                "start": self._done + at * 0.1,
                "end": self._done + at * 0.1 + 0.1,
                "confidence": 0.9,
            }
            for at, word in enumerate(text.split())
        ]
        start = self._done
        if is_final:
            self._done += seconds
            self._audio.clear()
            self._interims = count(1)
        await self._socket.send_json(
            {
                "type": "Results",
                "channel_index": [0, 1],
                "start": start,
                "duration": seconds,
                "is_final": is_final,
                "speech_final": is_final,
                "from_finalize": is_final,
                "channel": {"alternatives": [{"transcript": text, "confidence": 0.9, "words": words}]},
                "metadata": {"request_id": "r"},
            }
        )
