"""Acme: transcription over a WebSocket. Replace the messages with your vendor's."""

import json
from collections.abc import AsyncIterator, Sequence

from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType
from switchboard.plugin_sdk import (
    ProviderError,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
    hookimpl,
)

from switchboard_acme.client import AcmeProvider, AcmeSettings

PLUGIN_API_VERSION = 1
"""Version of the plugin API that this plugin was written for."""


class AcmeStream(SpeechToTextStream):
    """One call's transcription: audio as binary messages, all else as JSON."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._closed = False

    async def send(self, audio: bytes) -> None:
        await self._send(audio)

    async def finalize(self) -> None:
        await self._send('{"type": "finalize"}')

    async def _send(self, message: bytes | str) -> None:
        try:
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_str(message)
        except (ClientError, ConnectionError) as error:
            raise ProviderError("Acme has ended the transcription") from error

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                event = json.loads(message.data)
                yield Transcript(event["text"], is_final=event["final"], finalized=event["finalized"])
        if not self._closed:
            raise ProviderError("Acme has ended the transcription")

    async def close(self) -> None:
        self._closed = True
        await self._socket.close()


class AcmeTranscriber(AcmeProvider, SpeechToTextProvider[AcmeSettings]):
    """Acme's transcription of 16-bit PCM at 8000 samples per second."""

    name = "acme"
    title = "Acme"
    Settings = AcmeSettings

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        query = {"language": request.language, "model": request.model or "", "hints": ",".join(request.hints)}
        try:
            return AcmeStream(await self._client.session.ws_connect("/transcribe", params=query))
        except ClientError as error:
            raise ProviderError(f"Acme does not transcribe: {error}") from error


@hookimpl
def speech_to_text_providers() -> Sequence[type[AcmeTranscriber]]:
    return [AcmeTranscriber]
