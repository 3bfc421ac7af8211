"""Google Cloud Text-to-Speech, from `cloud_tts.proto` of github.com/googleapis/googleapis, August 2026: voices, and
sentences as WAVE files. Tokens are those that a service account signs by itself.
"""

import json
import struct
from base64 import b64encode
from typing import Final

from aiohttp import web
from google.auth import jwt
from pydantic import SecretStr

from tests.fixtures.cloud_servers import ACCOUNT, PUBLIC_KEY
from tests.speech.vendor import SpeechVendor, collect_synthesis

ACCOUNT_FILE: Final = SecretStr(json.dumps(ACCOUNT))
AUDIENCE: Final = "https://texttospeech.googleapis.com/"
VOICES = {
    "en-US-Chirp3-HD-Charon": "MALE",
    "de-DE-Chirp3-HD-Kore": "FEMALE",
    "en-US-Old": "SSML_VOICE_GENDER_UNSPECIFIED",
}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GoogleSpeech(SpeechVendor):
    """`is_wave`: speech has the header of a WAVE file, as Google's has."""

    is_wave = True

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/v1/voices", self._voices), web.post("/v1/text:synthesize", self._speak)]

    def has_key(self, request: web.Request) -> bool:
        return is_signed(request.headers.get("Authorization", ""), AUDIENCE)

    def refusal(self, status: int) -> web.Response:
        error = {"code": status, "message": f"refused with {ACCOUNT['private_key']}", "status": STATUSES[status]}
        return web.json_response({"error": error}, status=status)

    async def _voices(self, _: web.Request) -> web.Response:
        voices = [
            {"name": name, "languageCodes": [name[:5]], "ssmlGender": gender, "naturalSampleRateHertz": 24_000}
            for name, gender in VOICES.items()
        ]
        return web.json_response({"voices": voices})

    async def _speak(self, _: web.Request) -> web.Response:
        body = self.requests[-1].body
        sentence, voice, config = body["input"], body["voice"], body["audioConfig"]
        assert isinstance(sentence, dict)
        assert isinstance(voice, dict)
        assert isinstance(config, dict)
        assert (config["audioEncoding"], config["sampleRateHertz"]) == ("MULAW", 8000)
        if voice["name"] not in VOICES or not voice["name"].startswith(voice["languageCode"]):
            return self.refusal(400)
        audio, _words = await collect_synthesis(sentence["text"], config.get("speakingRate", 1.0))
        content = _build_wave(audio) if self.is_wave else audio
        return web.json_response({"audioContent": b64encode(content).decode()})


def is_signed(authorization: str, audience: str) -> bool:
    """Return whether a header has a token for a service that the account has signed."""
    kind, _, token = authorization.partition(" ")
    try:
        claims = jwt.decode(token, certs=PUBLIC_KEY, audience=audience)  # type: ignore[no-untyped-call]
    except ValueError:
        return False
    return (kind, claims["iss"], claims["sub"]) == ("Bearer", ACCOUNT["client_email"], ACCOUNT["client_email"])


def _build_wave(audio: bytes) -> bytes:
    """Return a WAVE file of mu-law, with a chunk of an odd length before the samples."""
    chunks = (
        (b"fmt ", struct.pack("<HHIIHHH", 7, 1, 8000, 8000, 1, 8, 0)),
        (b"LIST", b"odd"),
        (b"data", audio),
    )
    body = b"".join(
        name + struct.pack("<I", len(content)) + content + b"\x00" * (len(content) % 2) for name, content in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WAVE" + body
