"""Google Cloud's voices over REST, and its Speech-to-Text, version 2.

https://cloud.google.com/text-to-speech/docs/reference/rest/v1/text/synthesize, `cloud_tts.proto` of
github.com/googleapis/googleapis, August 2026, and https://cloud.google.com/speech-to-text/v2/docs.

A service account signs tokens itself, without a request (https://google.aip.dev/auth/4111).
"""

import asyncio
import importlib
import struct
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from google.auth import jwt
from google.auth.exceptions import GoogleAuthError
from pydantic import BaseModel, Field, HttpUrl, SecretStr
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    SpeechToTextProvider,
    SpeechToTextStream,
    TextToSpeechProvider,
    TextToSpeechSettings,
    TranscriptionRequest,
    Voice,
)
from switchboard.plugin_sdk.google_cloud import ServiceAccountKey, read_service_account

from switchboard_speech.connection import (
    ConnectedProvider,
    DefaultModel,
    DefaultVoice,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
    VendorUrl,
    parse_vendor_data,
)
from switchboard_speech.languages import get_locale

KeyFile = Annotated[
    ServiceAccountKey, Field(description="The JSON file of a service account's key, in a project with the API enabled.")
]


class AccountTokens:
    """Tokens for one service, `audience` (https://speech.googleapis.com/), signed with a key file."""

    def __init__(self, title: str, file: SecretStr, audience: str) -> None:
        self._title = title
        self._file = file
        self._audience = audience
        self._credentials: jwt.Credentials | None = None

    def build_headers(self) -> dict[str, str]:
        """Return the header with a token, which is renewed when it has expired. Raises `ProviderError`."""
        headers: dict[str, str] = {}
        try:
            if self._credentials is None:
                account = read_service_account(self._file).model_dump()
                self._credentials = jwt.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
                    {**account, "token_uri": self._audience}, audience=self._audience
                )
            self._credentials.before_request(None, "POST", self._audience, headers)
        except (GoogleAuthError, ValueError) as error:
            reason = f"{self._title}: the key of the service account is invalid ({error})"
            raise ProviderError(reason, retryable=False) from error
        return headers


VOICE_AUDIENCE: Final = "https://texttospeech.googleapis.com/"
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


def _read_fault(body: str) -> VendorFault:
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
        self._tokens = AccountTokens(self.title, settings.service_account, VOICE_AUDIENCE)

    def connection(self, settings: GoogleVoiceSettings) -> VendorConnection:
        key = SecretStr(read_service_account(settings.service_account).private_key)
        vendor = SpeechVendorSettings(api_key=key, base_url=settings.base_url)
        return VendorConnection(self.title, vendor, {}, _read_fault)

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


if TYPE_CHECKING:
    from switchboard_speech.google_stream import RecognizerChannel

AUDIENCE: Final = "https://speech.googleapis.com/"
GLOBAL: Final = "global"
MOST_PHRASES: Final = 500
LONGEST_PHRASE: Final = 100
MOST_LANGUAGES: Final = 3
LOCALES: Final[Mapping[str, str]] = {
    "zh-CN": "cmn-Hans-CN", "zh-TW": "cmn-Hant-TW", "zh-HK": "yue-Hant-HK", "nb-NO": "no-NO", "he-IL": "iw-IL",
}  # fmt: skip
"""Google's own names (https://cloud.google.com/speech-to-text/v2/docs/speech-to-text-supported-languages)."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9:.-]+$")]


class GoogleTranscriptionSettings(ProviderSettings):
    """Settings of Google's transcription."""

    service_account: KeyFile
    project: Name = Field(description="Google Cloud project that is billed.")
    location: Name = Field(GLOBAL, description="`global`, a multi-region (eu, us), or a region such as europe-west4.")
    model: DefaultModel = "telephony"
    language_codes: list[str] = Field(
        default=["en-US"],
        min_length=1,
        max_length=MOST_LANGUAGES,
        description="Languages of callers who switch between several (`mul`), most likely ones first.",
    )
    base_url: HttpUrl | None = Field(None, description="Address instead of the location's.")


class GoogleSpeechToText(SpeechToTextProvider[GoogleTranscriptionSettings]):
    """Google's live transcription of the phone's mu-law audio, over gRPC."""

    name = "google_speech"
    title = "Google Cloud Speech-to-Text"
    Settings = GoogleTranscriptionSettings
    audio_format = PHONE_MULAW

    def __init__(self, settings: GoogleTranscriptionSettings) -> None:
        super().__init__(settings)
        self._tokens = AccountTokens(self.title, settings.service_account, AUDIENCE)
        self._channel: RecognizerChannel | None = None

    async def open(self) -> None:
        # Importing gRPC takes a second.
        stream = await asyncio.to_thread(importlib.import_module, "switchboard_speech.google_stream")
        settings = self.settings
        prefix = "" if settings.location == GLOBAL else f"{settings.location}-"
        url = settings.base_url or HttpUrl(f"https://{prefix}speech.googleapis.com")
        recognizer = f"projects/{settings.project}/locations/{settings.location}/recognizers/_"
        host = f"{url.host}:{url.port}"
        self._channel = stream.RecognizerChannel(
            self.title, recognizer, self._tokens.build_headers, host, is_secure=url.scheme == "https"
        )

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def check(self) -> None:
        await self._require_channel().list_recognizers()

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        from switchboard_speech.google_stream import GoogleStream, build_config

        channel = self._require_channel()
        self._tokens.build_headers()  # A key that cannot sign is refused here, so that another vendor can be asked.
        await channel.wait_until_ready()
        locale = get_locale(request.language)
        languages = self.settings.language_codes if locale is None else [LOCALES.get(locale, locale)]
        hints = [hint for hint in request.hints if len(hint) <= LONGEST_PHRASE][:MOST_PHRASES]
        return GoogleStream(channel, build_config(request.model or self.settings.model, languages, hints))

    def _require_channel(self) -> "RecognizerChannel":
        if self._channel is None:
            raise ProviderError(f"{self.title} is not open", retryable=False)
        return self._channel
