"""Text-to-speech over OpenAI's protocol, of OpenAI and of compatible servers.

Requested directly and not over LiteLLM, which returns a response only when it is complete: the caller would wait for
the whole sentence.
"""

from collections.abc import AsyncIterator, Sequence
from typing import ClassVar, Final

import aiohttp
from pydantic import BaseModel, Field, ValidationError
from switchboard.plugin_sdk import (
    AudioFormat,
    ProviderError,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    TextToSpeechSettings,
    Voice,
)

from switchboard_llm.vendor_api import VendorProvider, VendorSettings, create_vendor_classes

OPENAI_VOICES: Final = (
    "alloy", "ash", "ballad", "coral", "echo", "fable", "marin", "cedar", "nova", "onyx", "sage", "shimmer", "verse",
)  # fmt: skip
SLOWEST, FASTEST = 0.25, 4.0
NOT_FOUND: Final = "404"


class VoiceSettings(TextToSpeechSettings, VendorSettings):
    """Settings of a vendor's voices."""

    voice_id: str = Field("alloy", description="Voice for agents that name none.")


class _Listed(BaseModel):
    id: str
    name: str | None = None


class _Voices(BaseModel):
    voices: list[str | _Listed] | None


class VendorVoice(VendorProvider[VoiceSettings], TextToSpeechProvider[VoiceSettings]):
    """`POST /audio/speech`, streamed: 16-bit samples at 24 kHz, OpenAI's format `pcm`."""

    Settings = VoiceSettings
    audio_format = AudioFormat("pcm16", 24_000)
    deadlines: ClassVar[aiohttp.ClientTimeout] = aiohttp.ClientTimeout(total=None, connect=5.0, sock_read=20.0)

    async def open(self) -> None:
        await super().open()
        self.build_url("", "")  # which needs an address

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        model = request.model or self.settings.model or self.default_model
        body: dict[str, object] = {
            "model": model,
            "voice": request.voice_id or self.settings.find_voice(request.language) or self.settings.voice_id,
            "input": request.text,
            "response_format": "pcm",
        }
        if request.speed != 1.0:
            body["speed"] = min(FASTEST, max(SLOWEST, request.speed))
        async with self.request("POST", self.build_url("/audio/speech", model), json=body) as response:
            if response.content_type.startswith("text/"):
                raise ProviderError(f"{self.title} answered with {response.content_type} instead of audio")
            async for audio in response.content.iter_any():
                yield SpeechChunk(audio)

    async def list_voices(self) -> Sequence[Voice]:
        """List OpenAI's voices by name; for other servers, the voices that they list, which many do not."""
        if self.vendor.name == "openai":
            return [Voice(name, name.title(), "") for name in OPENAI_VOICES]
        try:
            async with self.request("GET", self.build_url("/audio/voices", "")) as response:
                listed = _Voices.model_validate_json(await response.read()).voices
        except ValidationError as error:
            raise ProviderError(f"{self.title} lists its voices in an unknown format", retryable=False) from error
        except ProviderError as error:
            if error.code == NOT_FOUND:
                message = f"{self.title}: the server does not list its voices"
                raise ProviderError(message, code=NOT_FOUND, retryable=False) from error
            raise
        return [
            Voice(voice, voice, "") if isinstance(voice, str) else Voice(voice.id, voice.name or voice.id, "")
            for voice in listed or ()
        ]

    async def has_voice(self, voice_id: str) -> bool:
        # OpenAI lists its voices only in its documentation, so an unknown one may be new or custom.
        return self.vendor.name == "openai" or await super().has_voice(voice_id)


VOICES = create_vendor_classes(VendorVoice, "Voice", "speech")
