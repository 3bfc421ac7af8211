"""Acme: a voice. Replace the requests with your vendor's."""

from collections.abc import AsyncIterator, Sequence

from switchboard.plugin_sdk import ProviderError, SpeechChunk, SpeechRequest, TextToSpeechProvider, Voice, hookimpl

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""
DEFAULT_VOICE = "ada"


class AcmeVoice(AcmeProvider, TextToSpeechProvider[AcmeSettings]):
    """Acme's voices, in the default format: 16-bit PCM at 8000 samples per second."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        """Yield audio as it arrives."""
        body = {"text": request.text, "voice": request.voice_id or DEFAULT_VOICE, "speed": request.speed}
        async with self._client.stream("POST", "/speech", json=body) as response:
            if response.content_type.startswith("text/"):
                raise ProviderError(f"Acme answered with {response.content_type} instead of audio")
            async for audio in response.content.iter_any():
                yield SpeechChunk(audio)

    async def list_voices(self) -> Sequence[Voice]:
        voices = await self._client.request("GET", "/voices")
        return [Voice(voice["id"], voice["name"], voice["language"]) for voice in voices]


@hookimpl
def text_to_speech_providers() -> Sequence[type[AcmeVoice]]:
    return [AcmeVoice]
