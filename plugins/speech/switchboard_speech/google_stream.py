"""gRPC streams of Google Cloud Speech-to-Text. Importing this module takes a second, and 37 MB.

`StreamingRecognize` of `cloud_speech.proto`, version 2, github.com/googleapis/googleapis, August 2026.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import grpc.aio
from google.cloud.speech_v2.types import cloud_speech
from switchboard.plugin_sdk import PHONE_MULAW, ProviderError, Transcript

from switchboard_speech import streams
from switchboard_speech.connection import CONNECT_SECONDS

SERVICE: Final = "/google.cloud.speech.v2.Speech/"
MESSAGE_BYTES: Final = 800
"""Audio of 100 milliseconds, which Google recommends for a message."""
FINAL_CODES: Final = frozenset({
    "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED",
    "UNAUTHENTICATED",
})  # fmt: skip
"""Errors that a retry does not change."""
RACED: Final = "Internal error from Core"
"""gRPC's reason where a message was written just when the server ended the request."""
KEEP_ALIVE: Final = (("grpc.keepalive_time_ms", 30_000), ("grpc.keepalive_timeout_ms", 5_000))


class RecognizerChannel:
    """The connection to Google, for one recognizer: `projects/P/locations/L/recognizers/_`.

    Create it in the running event loop. `build_headers` returns headers with a token.
    """

    def __init__(
        self, title: str, recognizer: str, build_headers: Callable[[], dict[str, str]], host: str, *, is_secure: bool
    ) -> None:
        self.recognizer = recognizer
        self._title = title
        self._build_headers = build_headers
        if is_secure:
            self._channel = grpc.aio.secure_channel(host, grpc.ssl_channel_credentials(), options=KEEP_ALIVE)
        else:
            self._channel = grpc.aio.insecure_channel(host, options=KEEP_ALIVE)

    async def close(self) -> None:
        await self._channel.close()

    async def wait_until_ready(self) -> None:
        """Connect. Raises `ProviderError`."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while (state := self._channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
                    if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                        raise ProviderError(f"{self._title}: the connection failed")
                    await self._channel.wait_for_state_change(state)
        except TimeoutError:
            raise ProviderError(f"{self._title}: the connection failed (timeout)") from None

    async def list_recognizers(self) -> None:
        """List one recognizer, which is free, and needs the key, the role, and the project. Raises `ProviderError`."""
        await self.wait_until_ready()
        call = self._channel.unary_unary(
            f"{SERVICE}ListRecognizers",
            request_serializer=cloud_speech.ListRecognizersRequest.serialize,
            response_deserializer=cloud_speech.ListRecognizersResponse.deserialize,
        )
        parent = self.recognizer.partition("/recognizers/")[0]
        try:
            await call(
                cloud_speech.ListRecognizersRequest(parent=parent, page_size=1),
                metadata=(*self._build_metadata(), ("x-goog-request-params", f"parent={parent}")),
                timeout=CONNECT_SECONDS,
            )
        except grpc.aio.AioRpcError as error:
            raise self.translate(error) from error

    def recognize(
        self, requests: AsyncIterator[cloud_speech.StreamingRecognizeRequest]
    ) -> AsyncIterator[cloud_speech.StreamingRecognizeResponse]:
        """Transcribe one utterance."""
        call = self._channel.stream_stream(
            f"{SERVICE}StreamingRecognize",
            request_serializer=cloud_speech.StreamingRecognizeRequest.serialize,
            response_deserializer=cloud_speech.StreamingRecognizeResponse.deserialize,
        )
        responses: AsyncIterator[cloud_speech.StreamingRecognizeResponse] = call(
            requests, metadata=self._build_metadata()
        )
        return responses

    def translate(self, error: grpc.aio.AioRpcError) -> ProviderError:
        """Return the provider's error for an error of gRPC."""
        code = error.code().name
        return ProviderError(f"{self._title}: {error.details() or code}", code=code, retryable=code not in FINAL_CODES)

    def _build_metadata(self) -> Sequence[tuple[str, str]]:
        return [(name.lower(), value) for name, value in self._build_headers().items()]


def build_config(
    model: str, language_codes: Sequence[str], phrases: Sequence[str]
) -> cloud_speech.StreamingRecognitionConfig:
    """Return the configuration of an utterance of phone audio."""
    config = cloud_speech.RecognitionConfig(
        explicit_decoding_config=cloud_speech.ExplicitDecodingConfig(
            encoding=cloud_speech.ExplicitDecodingConfig.AudioEncoding.MULAW,
            sample_rate_hertz=PHONE_MULAW.sample_rate,
            audio_channel_count=1,
        ),
        model=model,
        language_codes=list(language_codes),
        features=cloud_speech.RecognitionFeatures(enable_automatic_punctuation=True, enable_word_time_offsets=True),
    )
    if phrases:
        phrase_set = cloud_speech.PhraseSet(phrases=[cloud_speech.PhraseSet.Phrase(value=phrase) for phrase in phrases])
        inline = cloud_speech.SpeechAdaptation.AdaptationPhraseSet(inline_phrase_set=phrase_set)
        config.adaptation = cloud_speech.SpeechAdaptation(phrase_sets=[inline])
    features = cloud_speech.StreamingRecognitionFeatures(interim_results=True)
    return cloud_speech.StreamingRecognitionConfig(config=config, streaming_features=features)


@dataclass(slots=True, eq=False)
class _Utterance:
    """An utterance: its audio until None. `is_sent`: all of it; `is_answered`: the finalization is confirmed."""

    audio: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    is_sent: bool = False
    is_answered: bool = False


class GoogleStream(streams.QueuedStream):
    """Stream in which each utterance is a request, whose words are final where its audio ends.

    If Google ends a request itself, the rest of the utterance is another one.
    """

    def __init__(self, channel: RecognizerChannel, config: cloud_speech.StreamingRecognitionConfig) -> None:
        super().__init__()
        self._channel = channel
        self._config = config
        self._gathered = bytearray()
        self._utterance: _Utterance | None = None
        self._readers: set[asyncio.Task[None]] = set()

    async def send(self, audio: bytes) -> None:
        if self._lost is not None:
            raise self._lost
        self._gathered += audio
        if len(self._gathered) >= MESSAGE_BYTES:
            self._send_gathered()

    async def finalize(self) -> None:
        if self._gathered:
            self._send_gathered()
        utterance, self._utterance = self._utterance, None
        if utterance is None:
            self._heard.put_nowait(Transcript("", is_final=True, finalized=True))
            return
        utterance.audio.put_nowait(None)
        self._grace = asyncio.get_running_loop().call_later(streams.GRACE_SECONDS, self._answer, utterance)

    async def close(self) -> None:
        await self.end(self._readers)

    def _send_gathered(self) -> None:
        if self._utterance is None:
            self._utterance = _Utterance()
            reader = asyncio.create_task(self._transcribe_utterance(self._utterance))
            self._readers.add(reader)
            reader.add_done_callback(self._readers.discard)
        self._utterance.audio.put_nowait(bytes(self._gathered))
        self._gathered.clear()

    async def _build_requests(
        self, audio: bytes, utterance: _Utterance
    ) -> AsyncIterator[cloud_speech.StreamingRecognizeRequest]:
        yield cloud_speech.StreamingRecognizeRequest(recognizer=self._channel.recognizer, streaming_config=self._config)
        yield cloud_speech.StreamingRecognizeRequest(audio=audio)
        while (following := await utterance.audio.get()) is not None:
            yield cloud_speech.StreamingRecognizeRequest(audio=following)
        utterance.is_sent = True

    async def _transcribe_utterance(self, utterance: _Utterance) -> None:
        try:
            while not utterance.is_sent and (audio := await utterance.audio.get()) is not None:
                await self._transcribe(audio, utterance)
        except ProviderError as error:
            self._lost = error
            self._heard.put_nowait(error)
        else:
            self._answer(utterance)

    async def _transcribe(self, audio: bytes, utterance: _Utterance) -> None:
        """Request the transcription of the rest of an utterance, from this audio on. Raises `ProviderError`."""
        try:
            async for response in self._channel.recognize(self._build_requests(audio, utterance)):
                self._handle(response)
        except grpc.aio.AioRpcError as error:
            # If the server has refused the request, it refuses the next one too, with its reason.
            if error.details() != RACED:
                raise self._channel.translate(error) from error

    def _handle(self, response: cloud_speech.StreamingRecognizeResponse) -> None:
        interim = ""
        for result in response.results:
            best = next(iter(result.alternatives), None)
            if best is None:
                continue
            if result.is_final:
                offsets = [(word.word, word.start_offset, word.end_offset) for word in best.words]
                words = streams.time_words(
                    [(text, start.total_seconds(), end.total_seconds()) for text, start, end in offsets]
                )
                text, confidence = best.transcript.strip(), best.confidence or None
                self._heard.put_nowait(Transcript(text, is_final=True, confidence=confidence, words=words))
            else:
                interim += best.transcript
        if interim.strip():
            self._heard.put_nowait(Transcript(interim.strip(), is_final=False))

    def _answer(self, utterance: _Utterance) -> None:
        """Confirm the end of an utterance, once."""
        if not utterance.is_answered:
            utterance.is_answered = True
            self._heard.put_nowait(Transcript("", is_final=True, finalized=True))
