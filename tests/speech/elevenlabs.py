"""ElevenLabs' server, from its published reference: streamed speech with word times, voices, and errors."""

import json
from base64 import b64encode

from aiohttp import web
from switchboard.plugin_sdk import Word

from tests.speech.vendor import KEY, SpeechVendor, collect_synthesis

VOICES = {"JBFqnCBsd6RMkjVDRZzb": "George", "EXAVITQu4vr4xnSDxMaL": "Sarah", "onwK4e9ZLuTAKqWW03F9": "Daniel"}
LEGACY = {"21m00Tcm4TlvDq8ikWAM": "Rachel"}
"""Voices that can be used and are in no list."""
LARGEST_PAGE = 2
STATUSES = {401: "invalid_api_key", 404: "voice_not_found", 429: "too_many_concurrent_requests", 500: "internal_error"}
CHUNK = 2000


class ElevenLabs(SpeechVendor):
    """`breaks` interrupts the next response after its first chunk.

    `counts_from_chunks`: times count from each chunk, as over the WebSocket.
    """

    breaks = False
    counts_from_chunks = False

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v2/voices", self._voices),
            web.get("/v1/voices/{voice}", self._voice),
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
