"""eSpeak NG through its library, in this process, and the provider `espeak`.

The library has one global state, so one lock guards it: 1.3 ms for a sentence of 1.5 seconds.
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
    """The loaded library."""

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
        self._identifiers = {voice.id: name for voice, name in self._iterate_voices()}

    def synthesize(self, text: str, voice: str, speed: float) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
        """Return samples, and per word: position and length in the text, and its start in milliseconds."""
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
        """Return whether a voice exists, including variants (`en-us+f3`)."""
        with self._lock:
            return self._choose(voice)

    def _choose(self, voice: str) -> bool:
        language, plus, variant = voice.partition("+")
        name = self._identifiers.get(language, language) + plus + variant
        return bool(self._library.espeak_SetVoiceByName(name.encode()) == 0)

    def list_voices(self) -> list[Voice]:
        """List the voices of every language."""
        return list({voice.id: voice for voice, _ in self._iterate_voices()}.values())

    def _iterate_voices(self) -> Iterator[tuple[Voice, str]]:
        """Yield each voice, with its language as id, and the library's own name for it."""
        genders = {1: "male", 2: "female"}
        voices, index = self._library.espeak_ListVoices(None), 0
        while voices[index]:
            voice = voices[index].contents
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
def _load_once() -> _Espeak:
    return _Espeak()


def _espeak() -> _Espeak:
    # Loading it in two threads at once crashes the process.
    with _loading:
        return _load_once()


def speak_text(text: str, *, voice: str = DEFAULT_VOICE, speed: float = 1.0, sample_rate: int = 8000) -> bytes:
    """Synthesize a text as 16-bit little-endian mono samples at `sample_rate`. Raises `ProviderError` for an unknown
    voice.
    """
    samples, _ = _espeak().synthesize(text, voice, speed)
    return _resample(samples, sample_rate)


def _resample(samples: np.ndarray, sample_rate: int) -> bytes:
    return np.asarray(soxr.resample(samples, _espeak().sample_rate, sample_rate), dtype="<i2").tobytes()


def _speak_with_words(request: SpeechRequest) -> tuple[bytes, tuple[Word, ...]]:
    samples, marks = _espeak().synthesize(request.text, request.voice_id or DEFAULT_VOICE, request.speed)
    audio = _resample(samples, PHONE_PCM.sample_rate)
    # Each word extends to the next one, so that it keeps its punctuation.
    places = [place - 1 for place, _, _ in marks] + [len(request.text)]
    starts = [start for _, _, start in marks] + [len(audio) * 1000 // PHONE_PCM.bytes_per_second]
    words = [Word(request.text[places[i] : places[i + 1]].strip(), starts[i], starts[i + 1]) for i in range(len(marks))]
    return audio, tuple(word for word in words if word.text)


class EspeakTextToSpeech(TextToSpeechProvider[ProviderSettings]):
    """eSpeak NG's voices: plain, instant, in a hundred languages.

    `voice_id` is a language, with an optional variant (`en-us`, `de`, `en-us+f3`).
    """

    name = "espeak"
    title = "eSpeak NG"
    audio_format = PHONE_PCM

    async def check(self) -> None:
        if not await asyncio.to_thread(speak_text, "check"):
            raise ProviderError("espeak-ng makes no sound", retryable=False)

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        audio, words = await asyncio.to_thread(_speak_with_words, request)
        if not audio:
            # Text without a word in it ("…") is spoken as a moment of silence.
            audio = bytes(CHUNK_BYTES)
        yield SpeechChunk(audio[:CHUNK_BYTES], words)
        for start in range(CHUNK_BYTES, len(audio), CHUNK_BYTES):
            yield SpeechChunk(audio[start : start + CHUNK_BYTES])

    async def list_voices(self) -> Sequence[Voice]:
        return await asyncio.to_thread(_espeak().list_voices)

    async def has_voice(self, voice_id: str) -> bool:
        return await asyncio.to_thread(_espeak().has, voice_id)
