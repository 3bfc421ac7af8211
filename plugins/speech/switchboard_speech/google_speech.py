"""Voices of Google Cloud Text-to-Speech over REST.

https://cloud.google.com/text-to-speech/docs/reference/rest/v1/text/synthesize, and `cloud_tts.proto` of
github.com/googleapis/googleapis, August 2026.
"""

import struct
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from typing import Final

from pydantic import BaseModel, Field, HttpUrl, SecretStr
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Voice,
)
from switchboard.plugin_sdk.google_cloud import read_service_account

from switchboard_speech.connection import (
    ConnectedProvider,
    DefaultVoice,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    VendorUrl,
    parse_vendor_data,
)
from switchboard_speech.google_account import AccountTokens, KeyFile

AUDIENCE: Final = "https://texttospeech.googleapis.com/"
SLOWEST, FASTEST = 0.25, 2.0
UNKNOWN_GENDER: Final = "SSML_VOICE_GENDER_UNSPECIFIED"


class GoogleVoiceSettings(TextToSpeechSettings):
    """Settings of Google's voices."""

    service_account: KeyFile
    base_url: VendorUrl = HttpUrl("https://texttospeech.googleapis.com")
    voice_id: DefaultVoice = "en-US-Chirp3-HD-Charon"


class _Reason(BaseModel):
    code: int
    message: str
    status: str | None = None


class _Failure(BaseModel):
    error: _Reason


class _Speech(BaseModel):
    audio: str = Field(alias="audioContent")


class _Voice(BaseModel):
    name: str
    languages: VendorList[str] = Field([], alias="languageCodes")
    gender: str = Field(UNKNOWN_GENDER, alias="ssmlGender")


class _Voices(BaseModel):
    voices: VendorList[_Voice] = []


def read_google_fault(body: str) -> VendorFault:
    """Read a fault. Raises `ValueError`."""
    error = _Failure.model_validate_json(body).error
    return VendorFault(error.status or str(error.code), error.message)


class GoogleTextToSpeech(ConnectedProvider[GoogleVoiceSettings], TextToSpeechProvider[GoogleVoiceSettings]):
    """Google's voices as mu-law. A sentence comes as a whole: Google streams speech over gRPC alone."""

    name = "google_speech"
    title = "Google Cloud Text-to-Speech"
    Settings = GoogleVoiceSettings
    audio_format = PHONE_MULAW

    def __init__(self, settings: GoogleVoiceSettings) -> None:
        super().__init__(settings)
        self._tokens = AccountTokens(self.title, settings.service_account, AUDIENCE)

    def connection(self, settings: GoogleVoiceSettings) -> VendorConnection:
        key = SecretStr(read_service_account(settings.service_account).private_key)
        vendor = SpeechVendorSettings(api_key=key, base_url=settings.base_url)
        return VendorConnection(self.title, vendor, {}, read_google_fault)

    async def check(self) -> None:
        await self.list_voices()

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        voice = request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id
        audio: dict[str, object] = {"audioEncoding": "MULAW", "sampleRateHertz": PHONE_MULAW.sample_rate}
        if request.speed != 1.0:
            audio["speakingRate"] = min(FASTEST, max(SLOWEST, request.speed))
        body = {
            "input": {"text": request.text},
            # The language is part of a voice's name: `de-DE-Chirp3-HD-Charon`.
            "voice": {"name": voice, "languageCode": "-".join(voice.split("-")[:2])},
            "audioConfig": audio,
        }
        headers = self._tokens.build_headers()
        async with self._connection.request("POST", "/v1/text:synthesize", body=body, headers=headers) as response:
            text = await response.text()
        with parse_vendor_data(self.title):
            speech = _read_wave(b64decode(_Speech.model_validate_json(text).audio))
        yield SpeechChunk(speech)

    async def list_voices(self) -> Sequence[Voice]:
        voices = (await self._connection.get("/v1/voices", _Voices, headers=self._tokens.build_headers())).voices
        return [
            Voice(
                voice.name,
                voice.name,
                next(iter(voice.languages), ""),
                voice.gender.lower() if voice.gender != UNKNOWN_GENDER else None,
            )
            for voice in voices
        ]


def _read_wave(file: bytes) -> bytes:
    """Return the samples of a WAVE file, whose header Google adds to mu-law. Raises `ValueError`."""
    if file[:4] != b"RIFF" or file[8:12] != b"WAVE":
        raise ValueError("the audio is not a WAVE file")
    at = 12
    while at + 8 <= len(file):
        name, length = struct.unpack_from("<4sI", file, at)
        if name == b"data":
            return file[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
    raise ValueError("the WAVE file has no samples")
