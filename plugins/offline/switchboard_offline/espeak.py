"""espeak-ng through its library, in this process, and the provider `espeak`.

The library is one global state, so one lock guards it: 1.3 ms for a sentence of a second and a half.
"""

import asyncio
import ctypes
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, Union, c_char_p, c_int, c_short, c_ubyte, c_uint, c_void_p
from functools import cache

import espeakng_loader
import numpy as np
import soxr
from switchboard.plugin_sdk import (
    PHONE_PCM,
    ProviderError,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    Voice,
    Word,
)

RETRIEVAL, UTF8, RATE_PARAMETER, EVENT_END, EVENT_WORD = 1, 1, 1, 0, 1
WORDS_PER_MINUTE = 165
CHUNK_BYTES = 3200
DEFAULT_VOICE = "en-us"


class _EventId(Union):
    _fields_ = (("number", c_int), ("name", c_char_p), ("string", c_ubyte * 8))


class _Event(Structure):
    _fields_ = (
        ("type", c_int),
        ("unique_identifier", c_uint),
        ("text_position", c_int),
        ("length", c_int),
        ("audio_position", c_int),
        ("sample", c_int),
        ("user_data", c_void_p),
        ("id", _EventId),
    )


class _Voice(Structure):
    _fields_ = (
        ("name", c_char_p),
        ("languages", c_void_p),
        ("identifier", c_char_p),
        ("gender", c_ubyte),
        ("age", c_ubyte),
        ("variant", c_ubyte),
        ("xx1", c_ubyte),
        ("score", c_int),
        ("spare", c_void_p),
    )


_Callback = CFUNCTYPE(c_int, POINTER(c_short), c_int, POINTER(_Event))


class _Espeak:
    """The library, once loaded."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self._library.espeak_ListVoices.restype = POINTER(POINTER(_Voice))
        self.sample_rate = self._library.espeak_Initialize(
            RETRIEVAL, 0, str(espeakng_loader.get_data_path()).encode(), 0
        )
        if self.sample_rate <= 0:
            raise ProviderError("espeak-ng cannot be started", retryable=False)
        self._samples: list[bytes] = []
        self._words: list[tuple[int, int, int]] = []
        self._callback = _Callback(self._take)
        self._library.espeak_SetSynthCallback(self._callback)
        self._lock = threading.Lock()
        self._identifiers = {voice.id: name for voice, name in self._listed()}

    def synthesize(self, text: str, voice: str, speed: float) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
        """Samples, and of each word: place and length in the text, milliseconds."""
        with self._lock:
            if not self._choose(voice):
                raise ProviderError(f"espeak has no voice {voice}; `en-us` is one", retryable=False)
            self._library.espeak_SetParameter(RATE_PARAMETER, max(80, min(450, round(WORDS_PER_MINUTE * speed))), 0)
            self._samples, self._words = [], []
            data = text.encode()
            self._library.espeak_Synth(data, len(data) + 1, 0, 1, 0, UTF8, None, None)
            self._library.espeak_Synchronize()
            return np.frombuffer(b"".join(self._samples), dtype=np.int16), self._words

    def has(self, voice: str) -> bool:
        """Whether there is a voice, a variant of one (`en-us+f3`) included."""
        with self._lock:
            return self._choose(voice)

    def _choose(self, voice: str) -> bool:
        language, plus, variant = voice.partition("+")
        name = self._identifiers.get(language, language) + plus + variant
        return bool(self._library.espeak_SetVoiceByName(name.encode()) == 0)

    def list_voices(self) -> list[Voice]:
        """The voices of every language."""
        return list({voice.id: voice for voice, _ in self._listed()}.values())

    def _listed(self) -> Iterator[tuple[Voice, str]]:
        """Each voice, known by its language, and the library's own name of it."""
        genders = {1: "male", 2: "female"}
        listed, index = self._library.espeak_ListVoices(None), 0
        while listed[index]:
            voice = listed[index].contents
            # The first byte is the language's priority.
            language = ctypes.string_at(voice.languages + 1)
            yield (
                Voice(
                    language.decode(), voice.name.decode(errors="replace"), language.decode(), genders.get(voice.gender)
                ),
                voice.identifier.decode(),
            )
            index += 1

    def _take(self, samples: "ctypes._Pointer[c_short]", count: int, events: "ctypes._Pointer[_Event]") -> int:
        if count > 0:
            self._samples.append(ctypes.string_at(samples, count * 2))
        index = 0
        while events[index].type != EVENT_END:
            event = events[index]
            if event.type == EVENT_WORD:
                self._words.append((event.text_position, event.length, event.audio_position))
            index += 1
        return 0


_loading = threading.Lock()


@cache
def _loaded() -> _Espeak:
    return _Espeak()


def _espeak() -> _Espeak:
    # Two threads that load it at once would bring the process down.
    with _loading:
        return _loaded()


def speak_text(text: str, *, voice: str = DEFAULT_VOICE, speed: float = 1.0, sample_rate: int = 8000) -> bytes:
    """Speak a text: 16-bit little-endian mono samples at the rate asked for. Raises `ProviderError` for an unknown voice."""
    samples, _ = _espeak().synthesize(text, voice, speed)
    return _resampled(samples, sample_rate)


def _resampled(samples: np.ndarray, sample_rate: int) -> bytes:
    return np.asarray(soxr.resample(samples, _espeak().sample_rate, sample_rate), dtype="<i2").tobytes()


def _speak_with_words(request: SpeechRequest) -> tuple[bytes, tuple[Word, ...]]:
    samples, marks = _espeak().synthesize(request.text, request.voice_id or DEFAULT_VOICE, request.speed)
    audio = _resampled(samples, PHONE_PCM.sample_rate)
    # Each word reaches to the next one, so that it keeps its punctuation.
    places = [place - 1 for place, _, _ in marks] + [len(request.text)]
    starts = [start for _, _, start in marks] + [len(audio) * 1000 // PHONE_PCM.bytes_per_second]
    words = [Word(request.text[places[i] : places[i + 1]].strip(), starts[i], starts[i + 1]) for i in range(len(marks))]
    return audio, tuple(word for word in words if word.text)


class EspeakTextToSpeech(TextToSpeechProvider[ProviderSettings]):
    """espeak-ng's voices: plain, instant, in a hundred languages, without an account. `voice_id` is a language (`en-us`, `de`, `en-us+f3`)."""

    name = "espeak"
    title = "eSpeak NG"
    audio_format = PHONE_PCM

    async def check(self) -> None:
        if not await asyncio.to_thread(speak_text, "check"):
            raise ProviderError("espeak-ng makes no sound", retryable=False)

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        audio, words = await asyncio.to_thread(_speak_with_words, request)
        if not audio:
            # Text without a word in it ("…"): a moment of silence is how that sounds.
            audio = bytes(CHUNK_BYTES)
        yield SpeechChunk(audio[:CHUNK_BYTES], words)
        for start in range(CHUNK_BYTES, len(audio), CHUNK_BYTES):
            yield SpeechChunk(audio[start : start + CHUNK_BYTES])

    async def list_voices(self) -> Sequence[Voice]:
        return await asyncio.to_thread(_espeak().list_voices)

    async def has_voice(self, voice_id: str) -> bool:
        return await asyncio.to_thread(_espeak().has, voice_id)
