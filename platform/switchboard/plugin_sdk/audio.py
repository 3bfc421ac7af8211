"""Audio as providers exchange it with the call engine."""

from dataclasses import dataclass
from typing import Literal

Encoding = Literal["pcm16", "mulaw", "alaw"]


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Mono audio: its encoding (`pcm16` is signed 16-bit little-endian; `mulaw` and `alaw` are G.711) and samples per second."""

    encoding: Encoding
    sample_rate: int

    @property
    def bytes_per_second(self) -> int:
        return self.sample_rate * (2 if self.encoding == "pcm16" else 1)


PHONE_PCM = AudioFormat("pcm16", 8000)
PHONE_MULAW = AudioFormat("mulaw", 8000)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and when it is heard, in milliseconds from the start of the audio it came with."""

    text: str
    start_ms: int
    end_ms: int
