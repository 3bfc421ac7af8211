"""Audio codecs of the line, each between its payload and mu-law at 8 kHz, the audio of a call."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from G722 import G722
from switchboard.plugin_sdk.audio import decode_audio, encode_audio, transcode_audio

from switchboard_telephony_sip.codec_names import CodecName
from switchboard_telephony_sip.media.frames import SAMPLE_RATE
from switchboard_telephony_sip.media.opus import OpusState, load_opus


class AudioCodec(ABC):
    """State of one direction pair of a call. A payload that is decoded may have any duration."""

    @abstractmethod
    def encode(self, mulaw: bytes) -> bytes:
        """Return the payload of a frame of mu-law."""

    @abstractmethod
    def decode(self, payload: bytes) -> bytes:
        """Return the mu-law of a payload."""

    def recover(self, payload: bytes) -> bytes:
        """Return the lost 20 ms of mu-law before a payload, from what it repeats of them; nothing without that."""
        return b""


class PcmuCodec(AudioCodec):
    """G.711 mu-law passes as it is."""

    def encode(self, mulaw: bytes) -> bytes:
        return mulaw

    def decode(self, payload: bytes) -> bytes:
        return payload


class PcmaCodec(AudioCodec):
    """G.711 A-law."""

    def encode(self, mulaw: bytes) -> bytes:
        return transcode_audio(mulaw, "mulaw", "alaw")

    def decode(self, payload: bytes) -> bytes:
        return transcode_audio(payload, "alaw", "mulaw")


class G722Codec(AudioCodec):
    """G.722 at 64 kbit/s. Only its lower band, which has the 4 kHz of a call, is coded, so nothing is resampled."""

    def __init__(self) -> None:
        self._encoder, self._decoder = G722(SAMPLE_RATE, 64_000), G722(SAMPLE_RATE, 64_000)

    def encode(self, mulaw: bytes) -> bytes:
        payload: bytes = self._encoder.encode(decode_audio(mulaw, "mulaw"))
        return payload

    def decode(self, payload: bytes) -> bytes:
        return encode_audio(np.asarray(self._decoder.decode(payload), dtype=np.int16), "mulaw")


class OpusCodec(OpusState, AudioCodec):
    """Opus, which repeats in each packet what is needed of the one before it."""


@dataclass(frozen=True, slots=True)
class CodecFormat:
    """Codec in a session description. `clock_rate` is that of the timestamps, which for G.722 is not the audio's."""

    make: Callable[[], AudioCodec]
    payload_type: int
    clock_rate: int = SAMPLE_RATE
    channels: int = 1


CODECS: Final[Mapping[CodecName, CodecFormat]] = {
    "PCMU": CodecFormat(PcmuCodec, 0),
    "PCMA": CodecFormat(PcmaCodec, 8),
    "G722": CodecFormat(G722Codec, 9),
    "opus": CodecFormat(OpusCodec, 96, 48_000, 2),
}


def list_available_codecs(wanted: Sequence[CodecName] = ()) -> list[CodecName]:
    """List the wanted codecs that this machine has, of all if none is named, in order of preference."""
    return [name for name in wanted or CODECS if name != "opus" or load_opus() is not None]
