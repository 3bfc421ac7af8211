"""Conversion of streaming audio between formats."""

import numpy as np
import soxr

from switchboard.plugin_sdk import AudioFormat
from switchboard.plugin_sdk.audio import decode_audio, encode_audio


class Converter:
    """Converts one stream. If the formats are equal, the bytes pass unchanged."""

    def __init__(self, source: AudioFormat, target: AudioFormat) -> None:
        self._source = source
        self._target = target
        self._odd = b""
        self._resampler = None
        if source.sample_rate != target.sample_rate:
            self._resampler = soxr.ResampleStream(
                source.sample_rate, target.sample_rate, 1, dtype="int16", quality="HQ"
            )

    def convert(self, audio: bytes, *, last: bool = False) -> bytes:
        """Convert the next piece; the resampler may hold some audio back until `last`."""
        if self._source == self._target:
            return audio
        if self._source.encoding == "pcm16":
            audio = self._odd + audio
            whole = len(audio) // 2 * 2
            audio, self._odd = audio[:whole], audio[whole:]
        samples = decode_audio(audio, self._source.encoding)
        if self._resampler is not None:
            samples = np.asarray(self._resampler.resample_chunk(samples, last=last), dtype=np.int16)
        return encode_audio(samples, self._target.encoding)
