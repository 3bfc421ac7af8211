"""Speech-to-text of vendors that transcribe whole recordings only: one request per utterance, when the caller has
finished.
"""

import io
import wave
from array import array
from functools import partial
from http import HTTPStatus
from typing import Final

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
from switchboard.plugin_sdk.connection_faults import describe_connection_fault
from switchboard.plugin_sdk.languages import get_single_language

from switchboard_llm.vendor_api import (
    VendorProvider,
    VendorSettings,
    build_headers,
    build_openai_url,
    create_vendor_class,
    read_refusal,
)
from switchboard_llm.vendors import VENDORS

ANSWER_SECONDS: Final = 10.0
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

    def __init__(self, settings: VendorSettings) -> None:
        super().__init__(settings)
        self._http: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                headers=build_headers(self.vendor, self.settings),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
            )
        return UtteranceStream(partial(self._transcribe, self._http, request))

    async def _transcribe(self, http: aiohttp.ClientSession, request: TranscriptionRequest, audio: bytes) -> str:
        samples = array("h", audio[: len(audio) // 2 * 2])
        if not samples or max(samples) - min(samples) < QUIET:
            return ""
        model = request.model or self.settings.model or self.vendor.transcription_model or ""
        url = build_openai_url(self.vendor, self.settings, "/audio/transcriptions", model)
        try:
            async with http.post(url, data=_build_form(model, request, audio), allow_redirects=False) as response:
                if response.status != HTTPStatus.OK:
                    raise await read_refusal(self.vendor, self.settings, response)
                return _Answer.model_validate_json(await response.read()).text.strip()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"{self.vendor.title} cannot be reached: {describe_connection_fault(error)}") from error
        except ValidationError as error:
            raise ProviderError(f"{self.vendor.title} answered with something that is not a transcription") from error


TRANSCRIBERS = [
    create_vendor_class(VendorTranscriber, vendor, "Transcriber", "transcription")
    for vendor in VENDORS
    if vendor.transcription_model is not None
]
