"""Speech-to-text by pocketsphinx: good with an agent's expected phrases, poor at anything else. For demonstrations and tests."""

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import soxr
import structlog
from pocketsphinx import Decoder, get_model_path
from switchboard.plugins import (
    PHONE_PCM,
    ProviderError,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
)

from switchboard_offline.grammar import PhraseGrammar

logger = structlog.get_logger()
Samples: TypeAlias = npt.NDArray[np.int16]

MODEL_RATE = 16_000
SHORTEST_PHONE, LONGEST_PHONE = 0.035, 0.2
"""Seconds that a phone of a phrase lasts in ordinary speech; a match outside of it is none."""
VOICED_LEVEL = 300
MARGIN = 800
DITHER = np.random.default_rng(0).normal(0, 8, 8000).astype(np.int16)
"""Faint noise, because the model knows no digital silence: 38 of 39 phrases are understood with it, 26 without. Always the same."""


class _Recognizer:
    """A decoder of this process, for one set of phrases; None for the general language model. One utterance at a time."""

    def __init__(self, hints: tuple[str, ...] | None) -> None:
        model = Path(get_model_path("en-us"))
        language_model = str(model / "en-us.lm.bin") if hints is None else None
        self._decoder = Decoder(
            hmm=str(model / "en-us"), dict=str(model / "cmudict-en-us.dict"), lm=language_model, samprate=MODEL_RATE, loglevel="FATAL"
        )
        self._lock = threading.Lock()
        self.grammar = PhraseGrammar(hints or (), lambda word: self._decoder.lookup_word(word) is not None)
        if self.grammar:
            self._decoder.add_jsgf_string("phrases", self.grammar.jsgf())
            self._decoder.activate_search("phrases")

    def words(self, audio: bytes) -> list[str]:
        """The words of an utterance at the model's rate."""
        with self._lock:
            self._decoder.start_utt()
            # The whole utterance at once, so that its own mean is taken off (batch CMN), without which short ones are lost.
            self._decoder.process_raw(audio, False, True)
            self._decoder.end_utt()
            hypothesis = self._decoder.hyp()
        return hypothesis.hypstr.split() if hypothesis is not None else []

    def phones(self, words: tuple[str, ...]) -> int:
        """How many phones words have."""
        return sum(len((self._decoder.lookup_word(word) or "").split()) for word in words)


_loading = threading.Lock()


@lru_cache(maxsize=16)
def _with_phrases(hints: tuple[str, ...]) -> _Recognizer:
    return _Recognizer(hints)


@lru_cache(maxsize=1)
def _with_language_model() -> _Recognizer:
    return _Recognizer(None)


def recognize(audio: bytes, hints: tuple[str, ...]) -> str:
    """What was said in 8 kHz PCM: one of the phrases where it fits, else what the general model makes of it."""
    samples = _trimmed(np.frombuffer(audio, dtype="<i2"))
    if not len(samples):
        return ""
    seconds = len(samples) / PHONE_PCM.sample_rate
    dithered = samples + DITHER[np.arange(len(samples)) % len(DITHER)]
    wide = np.asarray(soxr.resample(dithered, PHONE_PCM.sample_rate, MODEL_RATE), dtype="<i2").tobytes()
    recognizer = _with_phrases(hints)
    if recognizer.grammar:
        found = recognizer.grammar.phrases(recognizer.words(wide))
        phones = sum(recognizer.phones(words) for _, words in found)
        if found and SHORTEST_PHONE <= seconds / phones <= LONGEST_PHONE:
            return " ".join(phrase for phrase, _ in found)
    return " ".join(word for word in _with_language_model().words(wide) if word[0] not in "<[")


def _trimmed(samples: Samples) -> Samples:
    """The speech, with a tenth of a second around it: less loses its quiet ends, more is taken for words."""
    voiced = np.flatnonzero(np.abs(samples.astype(np.int32)) > VOICED_LEVEL)
    return samples[max(0, voiced[0] - MARGIN) : voiced[-1] + MARGIN] if len(voiced) else samples[:0]


class _Stream(SpeechToTextStream):
    """Keeps an utterance and decodes it when it is over."""

    def __init__(self, hints: tuple[str, ...]) -> None:
        self._hints = hints
        self._audio = bytearray()
        self._utterances: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def send(self, audio: bytes) -> None:
        self._audio += audio

    async def finalize(self) -> None:
        self._utterances.put_nowait(bytes(self._audio))
        self._audio.clear()

    async def __aiter__(self) -> AsyncIterator[Transcript]:
        while (audio := await self._utterances.get()) is not None:
            text = await asyncio.to_thread(recognize, audio, self._hints)
            yield Transcript(text, is_final=True, finalized=True)

    async def close(self) -> None:
        self._utterances.put_nowait(None)


class PocketsphinxSpeechToText(SpeechToTextProvider[ProviderSettings]):
    """English, offline, from the phrases that the agent expects."""

    name = "pocketsphinx"
    title = "PocketSphinx"
    audio_format = PHONE_PCM

    async def open(self) -> None:
        await asyncio.to_thread(_with_language_model)

    async def check(self) -> None:
        await asyncio.to_thread(recognize, bytes(1600), ())

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        if not request.language.lower().startswith("en"):
            raise ProviderError(f"pocketsphinx understands English only, not {request.language}", retryable=False)
        await asyncio.to_thread(_with_phrases, request.hints)
        return _Stream(request.hints)
