"""Speech-to-text by pocketsphinx: good with an agent's expected phrases, poor at anything else. For demonstrations and tests."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing.connection import wait
from typing import ParamSpec, TypeVar

from switchboard.plugin_sdk import (
    PHONE_PCM,
    ProviderError,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    Transcript,
    TranscriptionRequest,
)

from switchboard_offline.recognition import load_models, recognize

P = ParamSpec("P")
R = TypeVar("R")

PROCESSES = max(1, (os.cpu_count() or 2) // 2)


@cache
def _processes() -> ProcessPoolExecutor:
    """Where utterances are decoded: beside live calls, whose audio would stand still for as long as it takes. Each is started when it is needed."""
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), initializer=_tie_to_parent)


def _tie_to_parent() -> None:
    """A process ends with its parent, however that ends, and not by a Ctrl-C that is meant for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(parent: int) -> None:
    wait([parent])
    os._exit(0)


async def recognize_speech(audio: bytes, hints: tuple[str, ...]) -> str:
    """What was said in 8 kHz PCM: `recognize`, elsewhere."""
    return await _elsewhere(recognize, audio, hints)


async def _elsewhere(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in one of the processes. Raises `ProviderError` where one of them is killed meanwhile, or has no models to work with."""
    try:
        return await asyncio.wrap_future(_begin(function, *args, **kwargs))
    except BrokenProcessPool:
        raise ProviderError("the process that recognizes speech was killed") from None
    except RuntimeError as error:
        raise ProviderError(f"pocketsphinx cannot be loaded: {error}", retryable=False) from error


def _begin(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    try:
        return _processes().submit(function, *args, **kwargs)
    except BrokenProcessPool:
        # One was killed before, and the others ended with it.
        _processes.cache_clear()
        return _processes().submit(function, *args, **kwargs)


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
            yield Transcript(await recognize_speech(audio, self._hints), is_final=True, finalized=True)

    async def close(self) -> None:
        self._utterances.put_nowait(None)


class PocketsphinxSpeechToText(SpeechToTextProvider[ProviderSettings]):
    """English, offline, from the phrases that the agent expects."""

    name = "pocketsphinx"
    title = "PocketSphinx"
    audio_format = PHONE_PCM

    async def open(self) -> None:
        # Nobody waits for them: the first words are to be recognized after the greeting only.
        for _ in range(PROCESSES):
            _begin(load_models, ())

    async def check(self) -> None:
        await _elsewhere(load_models, ())

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        if not request.language.lower().startswith("en"):
            raise ProviderError(f"pocketsphinx understands English only, not {request.language}", retryable=False)
        await _elsewhere(load_models, request.hints)
        return _Stream(request.hints)
