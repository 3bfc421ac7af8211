"""Speech-to-text of vendors that transcribe whole recordings only: one request per utterance, when the caller has
finished.
"""

import asyncio
import io
import wave
from array import array
from collections.abc import AsyncIterator
from typing import Final

from switchboard.plugin_sdk import PHONE_PCM, SpeechToTextProvider, SpeechToTextStream, Transcript, TranscriptionRequest
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_llm.litellm_client import LiteLLMProvider, build_arguments, load_litellm, translate_error
from switchboard_llm.vendor_api import VendorSettings, create_vendor_class
from switchboard_llm.vendors import VENDORS, Vendor

ANSWER_SECONDS: Final = 10.0
QUIET: Final = 600
"""Minimum difference between the lowest and the highest sample. Whisper invents sentences for silence, so silence is
not sent.
"""
MOST_HINTS: Final = 50


class _Stream(SpeechToTextStream):
    """Buffers an utterance until it is over; there are no interim transcripts."""

    def __init__(self, vendor: Vendor, settings: VendorSettings, request: TranscriptionRequest) -> None:
        self._vendor = vendor
        self._settings = settings
        self._request = request
        self._audio = bytearray()
        self._utterances: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        self._audio += audio

    async def finalize(self) -> None:
        self._utterances.put_nowait(bytes(self._audio))
        self._audio.clear()

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (audio := await self._utterances.get()) is not None:
            yield Transcript("" if _is_quiet(audio) else await self._transcribe(audio), is_final=True, finalized=True)

    async def close(self) -> None:
        self._utterances.put_nowait(None)

    async def _transcribe(self, audio: bytes) -> str:
        litellm = await load_litellm()
        model = self._request.model or self._settings.model or self._vendor.transcription_model or ""
        given = build_arguments(self._vendor, self._settings, model)
        if self._request.hints:
            given["prompt"] = ", ".join(self._request.hints[:MOST_HINTS])
        if (language := get_single_language(self._request.language)) is not None:
            given["language"] = language
        try:
            answer = await litellm.atranscription(
                **given,
                file=("utterance.wav", _wav(audio), "audio/wav"),
                response_format="json",
                timeout=ANSWER_SECONDS,
            )
        except litellm.exceptions.openai.OpenAIError as error:
            raise translate_error(self._vendor, self._settings, error) from error
        return (answer.text or "").strip()


def _is_quiet(audio: bytes) -> bool:
    samples = array("h", audio[: len(audio) // 2 * 2])
    return not samples or max(samples) - min(samples) < QUIET


def _wav(audio: bytes) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, PHONE_PCM.sample_rate, 0, "NONE", "not compressed"))
        file.writeframes(audio)
    return buffer.getvalue()


class VendorTranscriber(LiteLLMProvider, SpeechToTextProvider[VendorSettings]):
    """Transcription of a vendor over LiteLLM, one utterance at a time."""

    audio_format = PHONE_PCM

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        return _Stream(self.vendor, self.settings, request)


TRANSCRIBERS = [
    create_vendor_class(VendorTranscriber, vendor, "Transcriber")
    for vendor in VENDORS
    if vendor.transcription_model is not None
]
