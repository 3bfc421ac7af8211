"""Acme: a voice that beeps once for each word. Put your vendor's speech in its place."""

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

BEEP_SECONDS = 0.3


class AcmeSettings(ProviderSettings):
    """What an operator writes in a tenant file. A credential would be `api_key: SecretStr`."""

    pitch: int = Field(default=440, ge=50, le=3000, description="Hertz of the beep.")


class AcmeVoice(TextToSpeechProvider[AcmeSettings]):
    """One beep a word, in the format that is the default: 16-bit PCM, 8000 samples a second."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def check(self) -> None:
        """Nothing to reach. Ask your vendor here whether the credential is accepted; raise `ProviderError` with what to do about it."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        """One chunk a word."""
        if request.voice_id not in (None, "beep"):
            raise ProviderError(f"there is no voice {request.voice_id}", retryable=False)
        seconds = BEEP_SECONDS / request.speed
        beep = self._beep(seconds)
        for word in request.text.split():
            yield SpeechChunk(beep, (Word(word, 0, int(seconds * 1000)),))

    async def list_voices(self) -> Sequence[Voice]:
        """The one voice."""
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
    """What this plugin provides. Other capabilities have hooks of their own: docs/plugins/hooks.md."""
    return [AcmeVoice]
