"""AssemblyAI's streaming server, version 3, from its published message sequence: Begin, turns, ForceEndpoint, and
errors before a close.

With `max_turn_silence` alone it judges turns: a pause of 0.2 seconds ends an utterance, one of 0.4 seconds the turn
(https://www.assemblyai.com/docs/streaming/message-sequence). Parameters follow `RealTimeParameters` of
github.com/AssemblyAI/assemblyai-python-sdk, August 2026.
"""

import asyncio
import json

from aiohttp import WSMsgType, web

from tests.speech.vendor import KEY, SpeechVendor, is_quiet, recognize_mulaw

SHORTEST, LONGEST = 400, 8000


class AssemblyAI(SpeechVendor):
    """`faults` are the codes and messages with which the next sessions end before they begin.

    `answers`: a forced endpoint is confirmed. `formats`: a turn is sent once more with punctuation if the client asks
    for that (https://www.assemblyai.com/docs/streaming/universal-streaming), once `release` is set. `ends_turns`: turns
    may end by themselves.
    """

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[tuple[int, str]] = []
        self.answers = self.ends_turns = self.formats = True
        self.release = asyncio.Event()
        self.release.set()
        self.frames: list[int] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v2/transcript", self._transcripts), web.get("/v3/ws", self._listen)]

    def has_key(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == KEY or request.path == "/v3/ws"

    def refusal(self, status: int) -> web.Response:
        return web.json_response({"error": f"Authentication error, API token {KEY} missing/invalid"}, status=status)

    async def _transcripts(self, _: web.Request) -> web.Response:
        return web.json_response({"page_details": {}, "transcripts": []})

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        socket = await self.socket(request)
        if request.headers.get("Authorization") != KEY:
            self.faults.append((1008, "Unauthorized Connection: Missing or invalid API key"))
        if "speech_model" not in request.query or (request.query["encoding"], request.query["sample_rate"]) != (
            "pcm_mulaw",
            "8000",
        ):
            self.faults.append((3006, "Input validation error"))
        if not 1 <= len(json.loads(request.query.get("language_codes", '["en"]'))) <= 10:
            self.faults.append((3006, "Input validation error"))
        if self.faults:
            await _fail(socket, *self.faults.pop(0))
            return socket
        await socket.send_json({"type": "Begin", "id": "s", "expires_at": 1_900_000_000})
        await self._turns(request, socket, tuple(json.loads(request.query.get("keyterms_prompt", "[]"))))
        return socket

    async def _turns(self, request: web.Request, socket: web.WebSocketResponse, keyterms: tuple[str, ...]) -> None:
        if "min_turn_silence" not in request.query and "end_of_turn_confidence_threshold" not in request.query:
            await self._judged_turns(socket, keyterms)
            return
        audio, turns, is_reported = bytearray(), 0, False
        async for message in socket:
            if message.type is WSMsgType.BINARY:
                self.frames.append(len(message.data))
                if not SHORTEST <= len(message.data) <= LONGEST:
                    await _fail(socket, 3007, "Input Duration Violation: expected between 50 and 1000 ms")
                    return
                audio += message.data
                if len(audio) > 4000 and not is_reported and request.query.get("include_partial_turns") != "false":
                    is_reported = True
                    await socket.send_json(_turn(turns, "can", end=False))
            elif (
                message.type is WSMsgType.TEXT and json.loads(message.data)["type"] == "ForceEndpoint" and self.answers
            ):
                turn = _turn(turns, recognize_mulaw(bytes(audio), keyterms), end=True)
                await socket.send_json(turn)
                if request.query.get("format_turns") == "true" and self.formats:
                    await self.release.wait()
                    text = f"{str(turn['transcript']).capitalize()}."
                    await socket.send_json(turn | {"turn_is_formatted": True, "transcript": text})
                audio.clear()
                turns, is_reported = turns + 1, False
            elif message.type is WSMsgType.TEXT and json.loads(message.data)["type"] == "Terminate":
                await socket.send_json(
                    {"type": "Termination", "audio_duration_seconds": 1, "session_duration_seconds": 1}
                )
                await socket.close()

    async def _judged_turns(self, socket: web.WebSocketResponse, keyterms: tuple[str, ...]) -> None:
        audio, text, turns, quiet = bytearray(), "", 0, 0
        async for message in socket:
            is_forced = message.type is WSMsgType.TEXT and json.loads(message.data)["type"] == "ForceEndpoint"
            if message.type is WSMsgType.BINARY:
                audio += message.data
                was_quiet, quiet = quiet, quiet + len(message.data) if is_quiet(message.data) else 0
                if was_quiet < 1600 <= quiet and (text := recognize_mulaw(bytes(audio), keyterms)):
                    await socket.send_json(_turn(turns, text, end=False) | {"utterance": text})
            elif not is_forced:
                await socket.close()
            if is_forced or (quiet >= 3200 and text and self.ends_turns):
                text = text or recognize_mulaw(bytes(audio), keyterms)
                await socket.send_json(_turn(turns, text, end=True))
                audio.clear()
                text, turns, quiet = "", turns + 1, 0


async def _fail(socket: web.WebSocketResponse, code: int, words: str) -> None:
    await socket.send_json({"type": "Error", "error_code": code, "error": words})
    await socket.close(code=code, message=b"See Error message for details")


def _turn(order: int, text: str, *, end: bool) -> dict[str, object]:
    words = [
        {"text": word, "start": 500 + at * 100, "end": 600 + at * 100, "confidence": 0.9, "word_is_final": True}
        for at, word in enumerate(text.split())
    ]
    return {
        "type": "Turn",
        "turn_order": order,
        "turn_is_formatted": False,
        "end_of_turn": end,
        "transcript": text,
        "end_of_turn_confidence": 0.7,
        "words": words,
    }
