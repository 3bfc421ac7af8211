"""Voice activity detection in batches over all calls of a process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import structlog

from switchboard.engine.conversation.speech.speech_input import SpeechInput
from switchboard.engine.conversation.speech.vad import WINDOW, VoiceDetector
from switchboard.plugin_sdk.audio import Samples, decode_audio

logger = structlog.get_logger()
MAX_WAIT_SECONDS = 0.01
WAIT_SECONDS_PER_INPUT = 0.00005
"""Time for which audio waits to be detected together with other calls' audio, for each live call and up to
`MAX_WAIT_SECONDS`: few calls are detected sooner, and many calls share the cost of a model run."""


class BatchedDetection:
    """Runs the detector over all inputs that have a window ready."""

    def __init__(self, detector: VoiceDetector) -> None:
        self._detector = detector
        self._inputs: list[SpeechInput] = []
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def attach(self, speech_input: SpeechInput) -> Iterator[None]:
        """Detect voice activity of an input within the block."""
        self._inputs.append(speech_input)
        try:
            yield
        finally:
            self._inputs.remove(speech_input)

    def schedule(self) -> None:
        """Run the detector soon, because an input has a window ready."""
        if self._timer is None:
            wait = min(MAX_WAIT_SECONDS, len(self._inputs) * WAIT_SECONDS_PER_INPUT)
            self._timer = asyncio.get_running_loop().call_later(wait, self._run)

    def close(self) -> None:
        """Cancel a scheduled run."""
        if self._timer is not None:
            self._timer.cancel()

    def _run(self) -> None:
        self._timer = None
        try:
            self._detect()
        except Exception:
            logger.exception("voice activity detection failed")

    def _detect(self) -> None:
        while ready := [speech_input for speech_input in self._inputs if len(speech_input.inbox) >= WINDOW]:
            windows = [bytes(speech_input.inbox[:WINDOW]) for speech_input in ready]
            samples: Samples = np.stack(
                [
                    decode_audio(window, speech_input.encoding)
                    for window, speech_input in zip(windows, ready, strict=True)
                ]
            )
            changes = self._detector.detect([speech_input.activity for speech_input in ready], samples)
            for speech_input, window, change in zip(ready, windows, changes, strict=True):
                del speech_input.inbox[:WINDOW]
                speech_input.handle_window(window, change)
