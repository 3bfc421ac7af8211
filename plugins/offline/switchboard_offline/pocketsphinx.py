"""Speech-to-text by PocketSphinx, for demonstrations and tests: good with an agent's expected phrases, poor
otherwise.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from multiprocessing.connection import wait
from typing import ParamSpec, TypeVar

from switchboard.plugin_sdk import (
    PHONE_PCM,
    ProviderError,
    ProviderSettings,
    SpeechToTextProvider,
    SpeechToTextStream,
    TranscriptionRequest,
    UtteranceStream,
)

from switchboard_offline.recognition import load_models, recognize

P = ParamSpec("P")
R = TypeVar("R")

PROCESSES = max(1, (os.cpu_count() or 2) // 2)


@cache
def _start_pool() -> ProcessPoolExecutor:
    """Return the pool of recognition processes, started on demand.

    Decoding in the server process would block live calls' audio for as long as it takes.
    """
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), initializer=_tie_to_parent)


def _tie_to_parent() -> None:
    """End this process with its parent, however the parent ends, and ignore a Ctrl-C meant for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def exit_with_parent() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(0)

    threading.Thread(target=exit_with_parent, daemon=True).start()


async def recognize_speech(audio: bytes, hints: tuple[str, ...]) -> str:
    """Return the words in 8 kHz PCM audio, recognized in another process."""
    return await _run_in_pool(recognize, audio, hints)


async def _run_in_pool(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a function in one of the processes.

    Raises `ProviderError` if a process is killed meanwhile, or has no models.
    """
    try:
        return await asyncio.wrap_future(_submit(function, *args, **kwargs))
    except BrokenProcessPool:
        raise ProviderError("the process that recognizes speech was killed") from None
    except RuntimeError as error:
        raise ProviderError(f"pocketsphinx cannot be loaded: {error}", retryable=False) from error


def _submit(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    try:
        return _start_pool().submit(function, *args, **kwargs)
    except BrokenProcessPool:
        # One process was killed earlier, which broke the whole pool.
        _start_pool.cache_clear()
        return _start_pool().submit(function, *args, **kwargs)


class PocketsphinxSpeechToText(SpeechToTextProvider[ProviderSettings]):
    """English, offline, from the phrases that the agent expects."""

    name = "pocketsphinx"
    title = "PocketSphinx"
    audio_format = PHONE_PCM
    for_demonstrations = True

    async def open(self) -> None:
        # Not awaited: the first words to recognize come only after the greeting.
        for _ in range(PROCESSES):
            _submit(load_models, ())

    async def check(self) -> None:
        await _run_in_pool(load_models, ())

    async def transcribe(self, request: TranscriptionRequest) -> SpeechToTextStream:
        if not request.language.lower().startswith("en"):
            raise ProviderError(f"pocketsphinx understands English only, not {request.language}", retryable=False)
        await _run_in_pool(load_models, request.hints)
        return UtteranceStream(partial(recognize_speech, hints=request.hints))
