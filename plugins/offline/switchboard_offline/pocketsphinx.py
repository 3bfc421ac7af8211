"""Speech-to-text by pocketsphinx: good with an agent's expected phrases, poor at anything else. For demonstrations and tests."""

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

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
DITHER = np.random.default_rng(0).normal(0, 1, 8000)


class _Prepared(NamedTuple):
    """An utterance at the model's rate, and how long its speech is."""

    wide: bytes
    seconds: float


class _Hearing(NamedTuple):
    """One way of listening: samples kept around the speech, the level of faint noise (the model knows no digital silence), loudness."""

    margin: int
    noise: int
    gain: float

    def prepare(self, samples: Samples, first: int, last: int) -> _Prepared:
        """The speech between two samples, for the decoder."""
        speech = samples[max(0, first - self.margin) : last + self.margin] * self.gain
        noisy = speech + DITHER[np.arange(len(speech)) % len(DITHER)] * self.noise
        narrow = np.clip(noisy, -32768, 32767).astype(np.int16)
        wide = np.asarray(soxr.resample(narrow, PHONE_PCM.sample_rate, MODEL_RATE), dtype="<i2").tobytes()
        return _Prepared(wide, len(speech) / PHONE_PCM.sample_rate)


HEARINGS = (
    _Hearing(800, 8, 1.0),
    _Hearing(800, 30, 1.0),
    _Hearing(1600, 8, 1.0),
    _Hearing(800, 8, 0.5),
    _Hearing(400, 8, 1.0),
    _Hearing(1200, 15, 0.5),
)
"""Tried in turn until a phrase fits: one alone understands 82 to 88 % of expected phrases, all together 92 % (README)."""


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

    def phrases(self, audio: bytes, seconds: float) -> list[str]:
        """The phrases of the grammar in an utterance; none where they would have been spoken impossibly fast or slowly."""
        found = self.grammar.phrases(self.words(audio))
        phones = sum(len((self._decoder.lookup_word(word) or "").split()) for _, words in found for word in words)
        if not found or not SHORTEST_PHONE <= seconds / phones <= LONGEST_PHONE:
            return []
        return [phrase for phrase, _ in found]


@lru_cache(maxsize=16)
def _with_phrases(hints: tuple[str, ...]) -> _Recognizer:
    return _Recognizer(hints)


@lru_cache(maxsize=1)
def _with_language_model() -> _Recognizer:
    return _Recognizer(None)


def recognize(audio: bytes, hints: tuple[str, ...]) -> str:
    """What was said in 8 kHz PCM: one of the phrases where it fits, else what the general model makes of it."""
    samples = np.frombuffer(audio, dtype="<i2")
    voiced = np.flatnonzero(np.abs(samples.astype(np.int32)) > VOICED_LEVEL)
    if not len(voiced):
        return ""
    first, last = int(voiced[0]), int(voiced[-1])
    recognizer = _with_phrases(hints)
    if recognizer.grammar:
        for hearing in HEARINGS:
            heard = hearing.prepare(samples, first, last)
            if phrases := recognizer.phrases(heard.wide, heard.seconds):
                return " ".join(phrases)
    wide = HEARINGS[0].prepare(samples, first, last).wide
    return " ".join(word for word in _with_language_model().words(wide) if word[0] not in "<[")


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
