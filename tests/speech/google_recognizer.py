"""Google Cloud Speech-to-Text, version 2, over gRPC: the service of `cloud_speech.proto`,
github.com/googleapis/googleapis, August 2026.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final, Self

import grpc.aio
from google.cloud.speech_v2.types import cloud_speech

from tests.fixtures.cloud_servers import PROJECT
from tests.speech.google import is_signed
from tests.speech.vendor import recognize_mulaw

AUDIENCE: Final = "https://speech.googleapis.com/"
PARENT: Final = f"projects/{PROJECT}/locations/global"


class GoogleRecognizer:
    """`faults` are the codes with which the next requests fail. `answers`: utterances are answered.

    `ends_requests`: the next request is ended by the server after 4000 bytes.
    """

    def __init__(self) -> None:
        self.address = ""
        self.faults: list[grpc.StatusCode] = []
        self.answers = True
        self.ends_requests = False
        self.configs: list[cloud_speech.RecognitionConfig] = []
        self.sizes: list[int] = []
        self._server = grpc.aio.server()

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Self]:
        recognizer = cls()
        handlers = {
            "StreamingRecognize": grpc.stream_stream_rpc_method_handler(
                recognizer._recognize,
                request_deserializer=cloud_speech.StreamingRecognizeRequest.deserialize,
                response_serializer=cloud_speech.StreamingRecognizeResponse.serialize,
            ),
            "ListRecognizers": grpc.unary_unary_rpc_method_handler(
                recognizer._list,
                request_deserializer=cloud_speech.ListRecognizersRequest.deserialize,
                response_serializer=cloud_speech.ListRecognizersResponse.serialize,
            ),
        }
        server = recognizer._server
        service = grpc.method_handlers_generic_handler("google.cloud.speech.v2.Speech", handlers)
        server.add_generic_rpc_handlers([service])
        recognizer.address = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        try:
            yield recognizer
        finally:
            await server.stop(None)

    async def drop(self) -> None:
        """Break every connection."""
        await self._server.stop(None)

    async def _admit(self, context: grpc.aio.ServicerContext) -> None:
        metadata = dict(context.invocation_metadata())
        if not is_signed(str(metadata.get("authorization", "")), AUDIENCE):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Request had invalid authentication credentials.")
        if self.faults:
            await context.abort(self.faults.pop(0), "refused as planned")

    async def _list(
        self, request: cloud_speech.ListRecognizersRequest, context: grpc.aio.ServicerContext
    ) -> cloud_speech.ListRecognizersResponse:
        await self._admit(context)
        if request.parent != PARENT:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no {request.parent}")
        return cloud_speech.ListRecognizersResponse()

    async def _recognize(
        self, requests: AsyncIterator[cloud_speech.StreamingRecognizeRequest], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[cloud_speech.StreamingRecognizeResponse]:
        first, begun = await anext(requests), await anext(requests)
        await self._admit(context)
        assert first.recognizer == f"{PARENT}/recognizers/_"
        config = first.streaming_config.config
        decoding = config.explicit_decoding_config
        assert (decoding.encoding.name, decoding.sample_rate_hertz, decoding.audio_channel_count) == ("MULAW", 8000, 1)
        assert first.streaming_config.streaming_features.interim_results
        assert config.features.enable_word_time_offsets
        self.configs.append(config)
        audio, is_reported = bytearray(begun.audio), False
        self.sizes.append(len(begun.audio))
        async for request in requests:
            self.sizes.append(len(request.audio))
            audio += request.audio
            if len(audio) > 4000 and not is_reported:
                is_reported = True
                yield _build([("can", 0.9), (" you", 0.1)])
            if len(audio) > 4000 and self.ends_requests:
                self.ends_requests = False
                break
        if not self.answers:
            await asyncio.Event().wait()
        if text := recognize_mulaw(bytes(audio)):
            yield _build_final(text)


def _build(parts: list[tuple[str, float]]) -> cloud_speech.StreamingRecognizeResponse:
    """Return an interim response, of which the first part is the most stable one."""
    return cloud_speech.StreamingRecognizeResponse(
        results=[
            cloud_speech.StreamingRecognitionResult(
                alternatives=[cloud_speech.SpeechRecognitionAlternative(transcript=text)], stability=stability
            )
            for text, stability in parts
        ]
    )


def _build_final(text: str) -> cloud_speech.StreamingRecognizeResponse:
    words = [
        cloud_speech.WordInfo(
            word=word,
            start_offset=timedelta(milliseconds=500 + at * 100),
            end_offset=timedelta(milliseconds=600 + at * 100),
        )
        for at, word in enumerate(text.split())
    ]
    best = cloud_speech.SpeechRecognitionAlternative(transcript=f" {text}", confidence=0.9, words=words)
    result = cloud_speech.StreamingRecognitionResult(alternatives=[best], is_final=True)
    return cloud_speech.StreamingRecognizeResponse(results=[result])
