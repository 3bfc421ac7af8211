"""Speech-to-text of vendors that transcribe whole recordings only: one request per utterance, when the caller has
finished.
"""

import io
import wave
from array import array
from functools import partial
from typing import ClassVar, Final

import aiohttp
from pydantic import BaseModel, ValidationError
from switchboard.plugin_sdk import (
    PHONE_PCM,
    ProviderError,
    SpeechToTextProvider,
    SpeechToTextStream,
    TranscriptionRequest,
    UtteranceStream,
)
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_llm.vendor_api import VendorProvider, VendorSettings, create_vendor_classes

QUIET: Final = 600
"""Minimum difference between the lowest and the highest sample. Whisper invents sentences for silence, so silence is
not sent.
"""
MOST_HINTS: Final = 50


class _Answer(BaseModel):
    """The transcript. Servers count what it costs in different ways, which is not read."""

    text: str


def _build_form(model: str, request: TranscriptionRequest, audio: bytes) -> aiohttp.FormData:
    """Return the form of a request (https://platform.openai.com/docs/api-reference/audio/createTranscription)."""
    form = aiohttp.FormData({"model": model, "response_format": "json"})
    if request.hints:
        form.add_field("prompt", ", ".join(request.hints[:MOST_HINTS]))
    if (language := get_single_language(request.language)) is not None:
        form.add_field("language", language)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, PHONE_PCM.sample_rate, 0, "NONE", "not compressed"))
        file.writeframes(audio)
    form.add_field("file", buffer.getvalue(), filename="utterance.wav", content_type="audio/wav")
    return form


class VendorTranscriber(VendorProvider[VendorSettings], SpeechToTextProvider[VendorSettings]):
    """Transcription of a vendor with OpenAI's wire format, one utterance at a time."""

    Settings = VendorSettings
    audio_format = PHONE_PCM
    deadlines: ClassVar[aiohttp.ClientTimeout] = aiohttp.ClientTimeout(total=10.0)

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        return UtteranceStream(partial(self._transcribe, request))

    async def _transcribe(self, request: TranscriptionRequest, audio: bytes) -> str:
        samples = array("h", audio[: len(audio) // 2 * 2])
        if not samples or max(samples) - min(samples) < QUIET:
            return ""
        model = request.model or self.settings.model or self.default_model
        url = self.build_url("/audio/transcriptions", model)
        try:
            async with self.request("POST", url, data=_build_form(model, request, audio)) as response:
                return _Answer.model_validate_json(await response.read()).text.strip()
        except ValidationError as error:
            raise ProviderError(f"{self.vendor.title} answered with something that is not a transcription") from error


TRANSCRIBERS = create_vendor_classes(VendorTranscriber, "Transcriber", "transcription")
