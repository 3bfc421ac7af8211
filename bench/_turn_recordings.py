"""Recordings of `bench/turns`, and the noises that are mixed into them."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from switchboard.plugin_sdk.audio import Samples, decode_audio, encode_audio

Floats: TypeAlias = npt.NDArray[np.float64]
Noise: TypeAlias = Literal["babble", "pink", "hum"]
FOLDER: Final = Path(__file__).parent / "turn_recordings"
RATE: Final = 8000
LEAD_SECONDS, TAIL_SECONDS = 1.0, 4.0
NOISES: Final[tuple[Noise, ...]] = ("babble", "pink", "hum")
BABBLE_VOICES: Final = 6


@dataclass(frozen=True, slots=True)
class Recording:
    """One turn of one speaker.

    `phrases` are the words between its pauses, and `voices` when each of them begins and ends, in seconds from the
    beginning of the call: `LEAD_SECONDS` without a voice precede the recording. `is_free` if people speak without a
    script. Every second recording of a language is `held_out`: no rule and no threshold was chosen by it.
    """

    name: str
    language: str
    phrases: tuple[str, ...]
    voices: tuple[tuple[float, float], ...]
    samples: Samples
    is_free: bool
    held_out: bool

    @property
    def end(self) -> float:
        """True end of the turn: its last voice."""
        return self.voices[-1][1]

    @property
    def pauses(self) -> list[tuple[float, float]]:
        """The inner pauses."""
        return [(before[1], after[0]) for before, after in zip(self.voices, self.voices[1:], strict=False)]

    @property
    def words(self) -> list[tuple[str, float]]:
        """The words, and when each can be known: in its middle. A phrase's words are as long as they have letters."""
        words = list[tuple[str, float]]()
        for phrase, (begin, end) in zip(self.phrases, self.voices, strict=True):
            letters = np.array([len(word) for word in phrase.split()])
            moments = begin + (end - begin) * (np.cumsum(letters) - letters / 2) / letters.sum()
            words += [(word, float(moment)) for word, moment in zip(phrase.split(), moments, strict=True)]
        return words


def load_recordings() -> list[Recording]:
    """Load the recordings of `recordings.toml` in `BENCH_RECORDINGS`, a folder, or else in `turn_recordings`."""
    folder = Path(os.environ.get("BENCH_RECORDINGS") or FOLDER)
    data = tomllib.loads((folder / "recordings.toml").read_text("utf-8"))
    free = {name for name, source in data["source"].items() if source["speech"] == "free"}
    recordings, languages = list[Recording](), list[str]()
    for row in data["recording"]:
        languages.append(row["language"])
        recordings.append(
            Recording(
                name=row["file"],
                language=row["language"],
                phrases=tuple(phrase.strip() for phrase in row["said"].split("|")),
                voices=tuple((begin / 1000 + LEAD_SECONDS, end / 1000 + LEAD_SECONDS) for begin, end in row["voices"]),
                samples=decode_audio((folder / row["file"]).read_bytes(), "mulaw"),
                is_free=row["source"] in free,
                held_out=languages.count(row["language"]) % 2 == 0,
            )
        )
    return recordings


def mix_calls(recordings: Sequence[Recording], snr_decibels: float | None) -> list[bytes]:
    """Return each caller's audio in mu-law, with silence around the recording, and noise over all of it.

    `snr_decibels` is the level of the voice above that of the noise; None: no noise. The noises take turns.
    """
    return [encode_audio(_mix_call(recordings, index, snr_decibels), "mulaw") for index in range(len(recordings))]


def _mix_call(recordings: Sequence[Recording], index: int, snr_decibels: float | None) -> Samples:
    recording = recordings[index]
    lead, tail = (np.zeros(round(seconds * RATE)) for seconds in (LEAD_SECONDS, TAIL_SECONDS))
    clean = np.concatenate([lead, recording.samples, tail])
    if snr_decibels is not None:
        voiced = np.concatenate([clean[round(begin * RATE) : round(end * RATE)] for begin, end in recording.voices])
        noise = _make_noise(NOISES[index % len(NOISES)], len(clean), recordings, index)
        clean = clean + noise * (_compute_level(voiced) / _compute_level(noise) / 10 ** (snr_decibels / 20))
    return np.clip(clean, -32768, 32767).astype(np.int16)


def _compute_level(samples: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(samples))))


def _make_noise(kind: Noise, length: int, recordings: Sequence[Recording], index: int) -> Floats:
    dice = np.random.default_rng(index)
    if kind == "babble":
        others = [recordings[other] for other in dice.permutation(len(recordings)) if other != index][:BABBLE_VOICES]
        voices = [np.roll(np.resize(other.samples.astype(float), length), dice.integers(length)) for other in others]
        return np.sum([voice / _compute_level(voice) for voice in voices], axis=0)
    moments = np.arange(length) / RATE
    if kind == "hum":  # of the mains, with harmonics as a bad power supply has them, and a little hiss
        harmonics = [np.sin(2 * np.pi * 50 * order * moments) / order for order in (1, 2, 3, 4, 5, 7, 9)]
        return np.asarray(np.sum(harmonics, axis=0) + dice.normal(0, 0.05, length))
    spectrum = np.fft.rfft(dice.normal(size=length))
    return np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), length)
