"""Azure Speech: its settings, and its voices.

https://learn.microsoft.com/en-us/azure/ai-services/speech-service/rest-text-to-speech
"""

import re
from collections.abc import AsyncIterator, Sequence
from html import escape
from typing import Annotated, Final

from pydantic import BaseModel, Field, HttpUrl, RootModel, SecretStr
from switchboard.plugin_sdk import (
    PHONE_MULAW,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Voice,
)

from switchboard_speech.connection import (
    ConnectedProvider,
    DefaultVoice,
    SpeechVendorSettings,
    VendorConnection,
    VendorFault,
    VendorList,
)
from switchboard_speech.languages import get_locale

SLOWEST, FASTEST = 0.5, 2.0
MULTILINGUAL: Final = "Multilingual"
"""Part of the names of voices that speak languages besides their own."""
NATIONAL_CLOUDS: Final = {"china": "azure.cn", "usgov": "azure.us"}
NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Region = Annotated[str, Field(pattern=r"^[a-z0-9]+$", description="Region of the Speech resource, such as westeurope.")]
ResourceUrl = Annotated[HttpUrl | None, Field(description="Address of a container, instead of the region's.")]


class AzureSpeechSettings(ProviderSettings):
    """A Speech resource: its key and region."""

    api_key: SecretStr = Field(description="A key of the Speech resource.")
    region: Region
    base_url: ResourceUrl = None


class AzureVoiceSettings(TextToSpeechSettings, AzureSpeechSettings):
    """Settings of Azure's voices."""

    voice_id: DefaultVoice = "en-US-AvaMultilingualNeural"


class _Reason(BaseModel):
    code: str | int | None = None
    message: str


class _Failure(BaseModel):
    error: _Reason


class _Voice(BaseModel):
    short_name: str = Field(alias="ShortName")
    display_name: str = Field(alias="DisplayName")
    locale: str = Field(alias="Locale")
    gender: str = Field("", alias="Gender")


class _Voices(RootModel[VendorList[_Voice]]):
    pass


def read_azure_fault(body: str) -> VendorFault:
    """Read a fault. Raises `ValueError`."""
    error = _Failure.model_validate_json(body).error
    return VendorFault(str(error.code) if error.code is not None else None, error.message)


def create_azure_connection(title: str, settings: AzureSpeechSettings, service: str) -> VendorConnection:
    """Create the connection to the service `stt` or `tts` of a region."""
    cloud = next((host for name, host in NATIONAL_CLOUDS.items() if settings.region.startswith(name)), "microsoft.com")
    base_url = settings.base_url or HttpUrl(f"https://{settings.region}.{service}.speech.{cloud}")
    return VendorConnection(
        title,
        SpeechVendorSettings(api_key=settings.api_key, base_url=base_url),
        {"Ocp-Apim-Subscription-Key": settings.api_key.get_secret_value()},
        read_azure_fault,
    )


class AzureTextToSpeech(ConnectedProvider[AzureVoiceSettings], TextToSpeechProvider[AzureVoiceSettings]):
    """Azure's neural voices, streamed as mu-law.

    One HTTP request per sentence. Word times are sent over the WebSocket alone.
    """

    name = "azure_speech"
    title = "Azure Speech"
    Settings = AzureVoiceSettings
    audio_format = PHONE_MULAW

    def connection(self, settings: AzureVoiceSettings) -> VendorConnection:
        return create_azure_connection(self.title, settings, "tts")

    async def check(self) -> None:
        await self._connection.get("/cognitiveservices/voices/list", _Voices)

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        headers = {
            "Content-Type": "application/ssml+xml",
            "X-Microsoft-OutputFormat": "raw-8khz-8bit-mono-mulaw",
            "User-Agent": "Switchboard",
        }
        voice = request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id
        ssml = _build_ssml(request, voice)
        async with self._connection.request("POST", "/cognitiveservices/v1", text=ssml, headers=headers) as response:
            if response.content_type.startswith("text/"):
                raise self._connection.error(f"the answer is {response.content_type} instead of audio")
            async for audio in response.content.iter_any():
                yield SpeechChunk(audio)

    async def list_voices(self) -> Sequence[Voice]:
        voices = (await self._connection.get("/cognitiveservices/voices/list", _Voices)).root
        return [Voice(voice.short_name, voice.display_name, voice.locale, voice.gender.lower()) for voice in voices]


def _build_ssml(request: SpeechRequest, voice: str) -> str:
    """Return the request of a sentence.

    https://learn.microsoft.com/azure/ai-services/speech-service/speech-synthesis-markup
    """
    spoken, language = escape(NOT_IN_XML.sub("", request.text)), get_locale(request.language)
    if request.speed != 1.0:
        spoken = f'<prosody rate="{min(FASTEST, max(SLOWEST, request.speed))}">{spoken}</prosody>'
    if language is not None and MULTILINGUAL in voice:
        spoken = f'<lang xml:lang="{escape(language)}">{spoken}</lang>'
    return (
        '<speak version="1.0" xmlns="http://www.w3.org/2001/10/synthesis" xml:lang="en-US">'
        f'<voice name="{escape(voice)}">{spoken}</voice></speak>'
    )
