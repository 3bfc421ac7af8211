"""The provider `espeak`: eSpeak NG in a process beside this one, because of its license (`espeak_program.py`).

The library has one global state, so all texts of a process take turns: 1.5 ms for a sentence of 1.5 seconds.
"""

import asyncio
import atexit
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, TypeVar

import espeakng_loader
import msgspec
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

from switchboard_offline import espeak_program

T = TypeVar("T")

WORDS_PER_MINUTE = 165
CHUNK_BYTES = 3200
DEFAULT_VOICE = "en-us"
RESPONSE_SECONDS = 10.0
"""Time in which eSpeak NG responds to a text: a thousand times what a sentence takes."""


class _ListedVoice(msgspec.Struct):
    id: str
    name: str
    gender: str


class _Voices(msgspec.Struct):
    voices: list[_ListedVoice]


class _Speech(msgspec.Struct):
    """Response to a text. `words` are the position of each in the text, and its start in milliseconds."""

    unknown_voice: bool = False
    sample_rate: int = 0
    words: list[tuple[int, int]] = []
    size: int = 0


class EspeakProcess:
    """The process of eSpeak NG. It starts with the first request, again after its death, and ends with this process.

    A process that does not respond is killed, because all texts wait for it.
    """

    def __init__(self, response_seconds: float = RESPONSE_SECONDS) -> None:
        self._response_seconds = response_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.end)

    def synthesize(self, text: str, voice: str, speed: float) -> tuple[_Speech, bytes]:
        """Return the response to a text, and its samples. Raises `ProviderError` for an unknown voice."""
        rate = max(80, min(450, round(WORDS_PER_MINUTE * speed)))
        speech, samples = self._exchange({"voice": voice, "text": text, "words_per_minute": rate}, _Speech)
        if speech.unknown_voice:
            raise ProviderError(f"espeak has no voice {voice}; `en-us` is one", retryable=False)
        return speech, samples

    def has_voice(self, voice: str) -> bool:
        """Return whether a voice exists, including variants (`en-us+f3`)."""
        request = {"voice": voice, "text": "", "words_per_minute": WORDS_PER_MINUTE}
        return not self._exchange(request, _Speech)[0].unknown_voice

    def list_voices(self) -> list[Voice]:
        """List the voices of every language."""
        voices = self._exchange({}, _Voices)[0].voices
        return list(
            {voice.id: Voice(voice.id, voice.name, voice.id, voice.gender or None) for voice in voices}.values()
        )

    def end(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _exchange(self, request: Mapping[str, object], response_type: type[T]) -> tuple[T, bytes]:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.end()
                self._process = _start_process()
            requests, responses = self._process.stdin, self._process.stdout
            deadline = threading.Timer(self._response_seconds, self._process.kill)
            deadline.start()
            try:
                if requests is None or responses is None:
                    raise BrokenPipeError
                requests.write(msgspec.json.encode(request) + b"\n")
                requests.flush()
                line = responses.readline()
                response = msgspec.json.decode(line, type=response_type)
                size = response.size if isinstance(response, _Speech) else 0
                samples = responses.read(size)
                if len(samples) < size:
                    raise BrokenPipeError
            except (OSError, msgspec.DecodeError):
                self.end()
                raise ProviderError("the process of espeak-ng died, or did not respond") from None
            finally:
                deadline.cancel()
            return response, samples


def _start_process() -> "subprocess.Popen[bytes]":
    command = [
        sys.executable, "-I", "-S", espeak_program.__file__,
        espeakng_loader.get_library_path(), espeakng_loader.get_data_path(),
    ]  # fmt: skip
    try:
        # A session of its own: an interrupt from the keyboard is meant for the server, which ends its calls first.
        return subprocess.Popen(  # noqa: S603 - the command is ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            # The same libraries, and nothing that is secret.
            env={"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")},
        )
    except OSError as error:
        raise ProviderError(f"the process of espeak-ng cannot be started: {error}") from error


_ESPEAK: Final = EspeakProcess()


def speak_text(text: str, *, voice: str = DEFAULT_VOICE, speed: float = 1.0, sample_rate: int = 8000) -> bytes:
    """Synthesize a text as 16-bit little-endian mono samples at `sample_rate`. Raises `ProviderError` for an unknown
    voice.
    """
    return _resample(*_ESPEAK.synthesize(text, voice, speed), sample_rate)


def _resample(speech: _Speech, samples: bytes, sample_rate: int) -> bytes:
    resampled = soxr.resample(np.frombuffer(samples, dtype=np.int16), speech.sample_rate, sample_rate)
    return np.asarray(resampled, dtype="<i2").tobytes()


def _speak_with_words(request: SpeechRequest) -> tuple[bytes, tuple[Word, ...]]:
    speech, samples = _ESPEAK.synthesize(request.text, request.voice_id or DEFAULT_VOICE, request.speed)
    audio = _resample(speech, samples, PHONE_PCM.sample_rate)
    # Each word extends to the next one, so that it keeps its punctuation.
    places = [place - 1 for place, _ in speech.words] + [len(request.text)]
    starts = [start for _, start in speech.words] + [len(audio) * 1000 // PHONE_PCM.bytes_per_second]
    words = [
        Word(request.text[places[i] : places[i + 1]].strip(), starts[i], starts[i + 1])
        for i in range(len(speech.words))
    ]
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
        return await asyncio.to_thread(_ESPEAK.list_voices)

    async def has_voice(self, voice_id: str) -> bool:
        return await asyncio.to_thread(_ESPEAK.has_voice, voice_id)
