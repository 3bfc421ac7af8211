"""Google Cloud Speech-to-Text, version 2: https://cloud.google.com/speech-to-text/v2/docs."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, HttpUrl
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderError,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    TranscriptionRequest,
)

from switchboard_speech.connection import DefaultModel
from switchboard_speech.google_account import AccountTokens, KeyFile
from switchboard_speech.languages import get_locale

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
        connect = (await asyncio.to_thread(_load_channel)).connect
        settings = self.settings
        prefix = "" if settings.location == GLOBAL else f"{settings.location}-"
        url = settings.base_url or HttpUrl(f"https://{prefix}speech.googleapis.com")
        recognizer = f"projects/{settings.project}/locations/{settings.location}/recognizers/_"
        host = f"{url.host}:{url.port}"
        self._channel = connect(self.title, recognizer, self._tokens, host, is_secure=url.scheme == "https")

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


def _load_channel() -> type["RecognizerChannel"]:
    """Import gRPC, in a thread: it takes a second."""
    from switchboard_speech.google_stream import RecognizerChannel

    return RecognizerChannel
