"""ElevenLabs' server, from its published reference: streamed speech with word times, voices, and errors.

Transcription follows the payload types of github.com/elevenlabs/elevenlabs-python of July 2026 (`session_started`,
`input_audio_chunk`, `committed_transcript_with_timestamps`, and the errors).
"""

import json
from base64 import b64decode, b64encode

from aiohttp import WSMsgType, web
from switchboard.plugin_sdk import Word

from tests.speech.vendor import KEY, SpeechVendor, collect_synthesis, recognize_mulaw

VOICES = {"JBFqnCBsd6RMkjVDRZzb": "George", "EXAVITQu4vr4xnSDxMaL": "Sarah", "onwK4e9ZLuTAKqWW03F9": "Daniel"}
LEGACY = {"21m00Tcm4TlvDq8ikWAM": "Rachel"}
"""Voices that can be used and are in no list."""
LARGEST_PAGE = 2
STATUSES = {401: "invalid_api_key", 404: "voice_not_found", 429: "too_many_concurrent_requests", 500: "internal_error"}
CHUNK = 2000
SHORTEST_COMMIT = 2400


class ElevenLabs(SpeechVendor):
    """`breaks` interrupts the next response after its first chunk.

    `counts_from_chunks`: times count from each chunk, as over the WebSocket. `faults` are the types and reasons of the
    errors with which the next sessions end before they start. `answers`: commits are answered. `sizes` are the
    lengths of the audio messages.
    """

    breaks = False
    counts_from_chunks = False
    answers = True

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[tuple[str, str]] = []
        self.sizes: list[int] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v2/voices", self._voices),
            web.get("/v1/voices/{voice}", self._voice),
            web.get("/v1/speech-to-text/realtime", self._listen),
            web.post("/v1/text-to-speech/{voice}/stream/with-timestamps", self._speak),
        ]

    def has_key(self, request: web.Request) -> bool:
        return request.headers.get("xi-api-key") == KEY

    def refusal(self, status: int) -> web.Response:
        if status == 422:
            return web.json_response(
                {"detail": [{"loc": ["body", "text"], "msg": "field required", "type": "missing"}]}, status=422
            )
        return web.json_response(
            {"detail": {"status": STATUSES[status], "message": f"{STATUSES[status]}, {KEY}"}}, status=status
        )

    async def _voices(self, request: web.Request) -> web.Response:
        assert int(request.query["page_size"]) <= 100
        since = int(request.query.get("next_page_token", "0"))
        until = since + min(LARGEST_PAGE, int(request.query["page_size"]))
        has_more = until < len(VOICES)
        voices = [_describe(id_, name) for id_, name in list(VOICES.items())[since:until]]
        return web.json_response(
            {
                "voices": voices,
                "has_more": has_more,
                "total_count": 0,
                "next_page_token": str(until) if has_more else None,
            }
        )

    async def _voice(self, request: web.Request) -> web.Response:
        known_voices = {**VOICES, **LEGACY}
        id_ = request.match_info["voice"]
        return web.json_response(_describe(id_, known_voices[id_])) if id_ in known_voices else self.refusal(404)

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["voice"] not in {**VOICES, **LEGACY}:
            return self.refusal(404)
        assert request.query["output_format"] == "ulaw_8000"
        body = self.requests[-1].body
        settings = body.get("voice_settings", {})
        audio, words = await collect_synthesis(
            str(body["text"]), float(settings.get("speed", 1)) if isinstance(settings, dict) else 1
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for at in range(0, len(audio), CHUNK):
            chunk_words = [word for word in words if at <= word.start_ms * 8 < at + CHUNK]
            since = at / 8000 if self.counts_from_chunks else 0.0
            line = {
                "audio_base64": b64encode(audio[at : at + CHUNK]).decode(),
                "alignment": _alignment(chunk_words, since) if chunk_words else None,
            }
            await response.write(json.dumps(line).encode() + b"\n\n")
            if self.breaks:
                self.breaks = False
                assert request.transport is not None
                request.transport.abort()
        await response.write_eof()
        return response

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        assert (query["audio_format"], query["commit_strategy"], query["include_timestamps"]) == (
            "ulaw_8000", "manual", "true",
        )  # fmt: skip
        assert all(len(term) <= 20 and len(term.split()) <= 5 for term in query.getall("keyterms", []))
        socket = await self.socket(request)
        if self.faults:
            kind, reason = self.faults.pop(0)
            await socket.send_json({"message_type": kind, "error": reason})
            await socket.close()
            return socket
        config = {"sample_rate": 8000, "audio_format": "ulaw_8000", "commit_strategy": "manual"}
        await socket.send_json({"message_type": "session_started", "session_id": "s", "config": config})
        await self._transcribe(socket)
        return socket

    async def list_sizes(self) -> list[int]:
        """Return the lengths of the audio messages so far."""
        return self.sizes

    async def _transcribe(self, socket: web.WebSocketResponse) -> None:
        audio, is_reported = bytearray(), False
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            chunk = json.loads(message.data)
            assert (chunk["message_type"], chunk["sample_rate"]) == ("input_audio_chunk", 8000)
            added = b64decode(chunk["audio_base_64"])
            audio += added
            self.sizes.append(len(added))
            if len(audio) > 4000 and not is_reported:
                is_reported = True
                await socket.send_json({"message_type": "partial_transcript", "text": "can"})
            if chunk["commit"] and len(audio) < SHORTEST_COMMIT:
                reason = "Commit request ignored: You need at least 0.3s of uncommitted audio before committing."
                await socket.send_json({"message_type": "commit_throttled", "error": reason})
            elif chunk["commit"] and self.answers:
                text = recognize_mulaw(bytes(audio))
                await socket.send_json({"message_type": "committed_transcript", "text": text})
                words = [
                    {"text": word, "type": "word", "start": 0.5 + at / 10, "end": 0.6 + at / 10, "logprob": -0.1}
                    for at, word in enumerate(text.split())
                ]
                timed = {"text": text, "language_code": "en", "words": words}
                await socket.send_json({"message_type": "committed_transcript_with_timestamps", **timed})
                audio.clear()
                is_reported = False


def _describe(voice_id: str, name: str) -> dict[str, object]:
    return {"voice_id": voice_id, "name": name, "labels": {"language": "en", "gender": "male"}}


def _alignment(words: list[Word], since: float) -> dict[str, object]:
    """Return each character's times within its word, in seconds, `since` seconds after the text's start; a space ends a
    word.
    """
    characters, starts, ends = [], [], []
    for word in words:
        share = (word.end_ms - word.start_ms) / 1000 / (len(word.text) + 1)
        for at, character in enumerate(word.text + " "):
            characters.append(character)
            starts.append(word.start_ms / 1000 + at * share - since)
            ends.append(word.start_ms / 1000 + (at + 1) * share - since)
    return {"characters": characters, "character_start_times_seconds": starts, "character_end_times_seconds": ends}
