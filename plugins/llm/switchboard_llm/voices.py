"""Text-to-speech over OpenAI's protocol, of OpenAI and of compatible servers.

Requested directly and not over LiteLLM, which returns a response only when it is complete: the caller would wait for
the whole sentence.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Final

import aiohttp
from pydantic import BaseModel, Field
from switchboard.plugin_sdk import (
    AudioFormat,
    ProviderError,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Voice,
)
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.retries import read_retry_after

from switchboard_llm.vendor_api import RETRYABLE, VendorProvider, VendorSettings, create_vendor_class, hide_key
from switchboard_llm.vendors import VENDORS

OPENAI: Final = "https://api.openai.com/v1"
OPENAI_VOICES: Final = (
    "alloy", "ash", "ballad", "coral", "echo", "fable", "marin", "cedar", "nova", "onyx", "sage", "shimmer", "verse",
)  # fmt: skip
SLOWEST, FASTEST = 0.25, 4.0
CONNECT_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 20.0


class VoiceSettings(TextToSpeechSettings, VendorSettings):
    """Settings of a vendor's voices."""

    voice_id: str = Field("alloy", description="Voice for agents that name none.")


class _Listed(BaseModel):
    id: str
    name: str | None = None


class _Voices(BaseModel):
    voices: list[str | _Listed] | None


class _Reason(BaseModel):
    message: str
    code: str | int | None = None


class _Failure(BaseModel):
    error: _Reason


class VendorVoice(VendorProvider[VoiceSettings], TextToSpeechProvider[VoiceSettings]):
    """`POST /audio/speech`, streamed: 16-bit samples at 24 kHz, OpenAI's format `pcm`."""

    Settings = VoiceSettings
    audio_format = AudioFormat("pcm16", 24_000)

    def __init__(self, settings: VoiceSettings) -> None:
        super().__init__(settings)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        await super().open()
        if self.settings.base_url is None and self.vendor.name != "openai":
            raise ProviderError(f"{self.title} needs an address: base_url in the tenant file", retryable=False)
        key = self.settings.api_key
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {key.get_secret_value()}"} if key else {},
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        body: dict[str, object] = {
            "model": request.model or self.settings.model or self.vendor.speech_model,
            "voice": request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id,
            "input": request.text,
            "response_format": "pcm",
        }
        if request.speed != 1.0:
            body["speed"] = min(FASTEST, max(SLOWEST, request.speed))
        try:
            async with self._require_session().post(f"{self.address}/audio/speech", json=body) as response:
                if response.status >= 400:
                    raise self._status_error(response, await response.text(errors="replace"))
                if response.content_type.startswith("text/"):
                    raise ProviderError(f"{self.title} answered with {response.content_type} instead of audio")
                async for audio in response.content.iter_any():
                    yield SpeechChunk(audio)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"{self.title}: the connection failed ({describe_connection_fault(error)})") from error

    async def list_voices(self) -> Sequence[Voice]:
        """List OpenAI's voices by name; for other servers, the voices that they list, which many do not."""
        if self.vendor.name == "openai":
            return [Voice(name, name.title(), "") for name in OPENAI_VOICES]
        try:
            async with self._require_session().get(f"{self.address}/audio/voices") as response:
                if response.status >= 400:
                    raise self._status_error(response, "the server does not list its voices")
                listed = _Voices.model_validate_json(await response.text()).voices
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"{self.title}: the connection failed ({describe_connection_fault(error)})") from error
        except ValueError as error:
            raise ProviderError(f"{self.title} lists its voices in an unknown format", retryable=False) from error
        return [
            Voice(voice, voice, "") if isinstance(voice, str) else Voice(voice.id, voice.name or voice.id, "")
            for voice in listed or ()
        ]

    async def has_voice(self, voice_id: str) -> bool:
        # OpenAI lists its voices only in its documentation, so an unknown one may be new or custom.
        return self.vendor.name == "openai" or await super().has_voice(voice_id)

    @property
    def address(self) -> str:
        return (self.settings.base_url or OPENAI).rstrip("/")

    def _require_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise ProviderError(f"{self.title} is not open", retryable=False)
        return self._session

    def _status_error(self, response: aiohttp.ClientResponse, body: str) -> ProviderError:
        status = response.status
        try:
            reason = _Failure.model_validate_json(body).error
        except ValueError:
            reason = _Reason(message=body.strip()[:300] or "no reason was given")
        return ProviderError(
            f"{self.title}: {hide_key(self.settings, reason.message)}",
            code=str(reason.code or status),
            retryable=status >= 500 or status in RETRYABLE,
            retry_after_seconds=read_retry_after(response.headers.get("Retry-After")),
        )


VOICES = [
    create_vendor_class(VendorVoice, vendor, "Voice", "speech") for vendor in VENDORS if vendor.speech_model is not None
]
