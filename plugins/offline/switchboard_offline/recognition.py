"""What was said in an utterance, by pocketsphinx. Its decoder holds the interpreter's lock while it works, so this is for a process of its own."""

import threading
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import soxr
from pocketsphinx import Decoder, get_model_path

from switchboard_offline.grammar import PhraseGrammar

Samples: TypeAlias = npt.NDArray[np.int16]

PHONE_RATE = 8_000
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
        wide = np.asarray(soxr.resample(narrow, PHONE_RATE, MODEL_RATE), dtype="<i2").tobytes()
        return _Prepared(wide, len(speech) / PHONE_RATE)


LISTENING_MODES = (
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
            hmm=str(model / "en-us"),
            dict=str(model / "cmudict-en-us.dict"),
            lm=language_model,
            samprate=MODEL_RATE,
            loglevel="FATAL",
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


@lru_cache(maxsize=8)
def _with_phrases(hints: tuple[str, ...]) -> _Recognizer:
    return _Recognizer(hints)


@lru_cache(maxsize=1)
def _with_language_model() -> _Recognizer:
    return _Recognizer(None)


def load_models(hints: tuple[str, ...]) -> None:
    """Load what an utterance with these hints needs: half a second the first time."""
    _with_phrases(hints)
    _with_language_model()


def recognize(audio: bytes, hints: tuple[str, ...]) -> str:
    """What was said in 8 kHz PCM: one of the phrases where it fits, else what the general model makes of it."""
    samples = np.frombuffer(audio, dtype="<i2")
    voiced = np.flatnonzero(np.abs(samples.astype(np.int32)) > VOICED_LEVEL)
    if not len(voiced):
        return ""
    first, last = int(voiced[0]), int(voiced[-1])
    recognizer = _with_phrases(hints)
    if recognizer.grammar:
        for hearing in LISTENING_MODES:
            heard = hearing.prepare(samples, first, last)
            if phrases := recognizer.phrases(heard.wide, heard.seconds):
                return " ".join(phrases)
    wide = LISTENING_MODES[0].prepare(samples, first, last).wide
    return " ".join(word for word in _with_language_model().words(wide) if word[0] not in "<[")
