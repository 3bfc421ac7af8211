"""Acme: a voice that beeps once per word. Replace the beep with your vendor's speech."""

import math
import struct
from collections.abc import AsyncIterator, Sequence

from pydantic import Field
from switchboard.plugin_sdk import (
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    Voice,
    Word,
    hookimpl,
)

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""

BEEP_SECONDS = 0.3


class AcmeSettings(ProviderSettings):
    """Settings of the provider in a tenant file. A credential would be `api_key: SecretStr`."""

    pitch: int = Field(default=440, ge=50, le=3000, description="Hertz of the beep.")


class AcmeVoice(TextToSpeechProvider[AcmeSettings]):
    """Voice that speaks one beep per word, in the default format: 16-bit PCM at 8000 samples per second."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def check(self) -> None:
        """Check nothing: there is no vendor.

        Ask your vendor here whether the credential is accepted, and raise `ProviderError` with a message that an
        operator can act on.
        """

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        """Yield one chunk per word."""
        if request.voice_id not in (None, "beep"):
            raise ProviderError(f"there is no voice {request.voice_id}", retryable=False)
        seconds = BEEP_SECONDS / request.speed
        beep = self._beep(seconds)
        for word in request.text.split():
            yield SpeechChunk(beep, (Word(word, 0, int(seconds * 1000)),))

    async def list_voices(self) -> Sequence[Voice]:
        """List the only voice."""
        return [Voice("beep", "Beep", "en-US")]

    def _beep(self, seconds: float) -> bytes:
        rate = self.audio_format.sample_rate
        samples = [
            int(9000 * math.sin(2 * math.pi * self.settings.pitch * index / rate))
            for index in range(int(seconds * rate))
        ]
        return struct.pack(f"<{len(samples)}h", *samples)


@hookimpl
def text_to_speech_providers() -> Sequence[type[AcmeVoice]]:
    """Provide the voice. Hooks for other capabilities: docs/plugins/hooks.md."""
    return [AcmeVoice]
