"""Audio codecs of the line, each between its payload and mu-law at 8 kHz, the audio of a call."""

import ctypes
import ctypes.util
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from G722 import G722
from switchboard.plugin_sdk.audio import decode_audio, encode_audio, transcode_audio

from switchboard_telephony_sip.media.frames import FRAME_SAMPLES, SAMPLE_RATE
from switchboard_telephony_sip.settings import CodecName

LONGEST_SAMPLES: Final = 960
"""Samples of the longest packet, 120 ms (RFC 6716, section 2.1.4)."""
MOST_BYTES: Final = 1275
"""Bytes of the longest frame."""
APPLICATION_VOIP: Final = 2048
SET_BITRATE, SET_COMPLEXITY, SET_INBAND_FEC, SET_PACKET_LOSS = 4002, 4010, 4012, 4014
BITRATE: Final = 20_000
"""Bits per second: 12,000 are enough for speech of a telephone (RFC 7587, section 3.1.1), the others repeat it."""
COMPLEXITY: Final = 5
EXPECTED_LOSS: Final = 10
"""Percent of packets for whose loss each packet repeats the one before it, in lower quality."""


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


@lru_cache(maxsize=1)
def load_opus() -> ctypes.CDLL | None:
    """Return libopus (RFC 6716, RFC 7587); None if this machine does not have it.

    No wheel has it: PyAV brings 100 MB of FFmpeg, and the others wrap the same library for one maintainer. So six of
    its functions are called by ctypes (https://opus-codec.org/docs/opus_api-1.3.1/).
    """
    name = ctypes.util.find_library("opus")
    if name is None:
        return None
    library = ctypes.CDLL(name)
    handle, integer, error = ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int)
    library.opus_encoder_create.argtypes = (ctypes.c_int32, integer, integer, error)
    library.opus_decoder_create.argtypes = (ctypes.c_int32, integer, error)
    library.opus_encoder_create.restype = library.opus_decoder_create.restype = handle
    library.opus_encoder_ctl.argtypes = (handle, integer)
    library.opus_encode.argtypes = (handle, ctypes.c_char_p, integer, ctypes.c_char_p, ctypes.c_int32)
    library.opus_decode.argtypes = (handle, ctypes.c_char_p, ctypes.c_int32, ctypes.c_void_p, integer, integer)
    library.opus_encoder_destroy.argtypes = library.opus_decoder_destroy.argtypes = (handle,)
    library.opus_encoder_destroy.restype = library.opus_decoder_destroy.restype = None
    return library


class OpusCodec(AudioCodec):
    """Opus at 8 kHz by the system's libopus, which repeats in each packet what is needed of the one before it."""

    def __init__(self) -> None:
        library = load_opus()
        if library is None:
            raise RuntimeError("libopus is not installed")
        self._library = library
        failed = ctypes.c_int()
        self._encoder = library.opus_encoder_create(SAMPLE_RATE, 1, APPLICATION_VOIP, ctypes.byref(failed))
        self._decoder = library.opus_decoder_create(SAMPLE_RATE, 1, ctypes.byref(failed))
        if not self._encoder or not self._decoder:
            raise MemoryError("libopus has no memory for a call")
        weakref.finalize(self, library.opus_encoder_destroy, self._encoder)
        weakref.finalize(self, library.opus_decoder_destroy, self._decoder)
        settings = {SET_BITRATE: BITRATE, SET_COMPLEXITY: COMPLEXITY, SET_INBAND_FEC: 1, SET_PACKET_LOSS: EXPECTED_LOSS}
        for setting, value in settings.items():
            library.opus_encoder_ctl(self._encoder, setting, ctypes.c_int32(value))
        self._packet = ctypes.create_string_buffer(MOST_BYTES)
        self._samples = np.zeros(LONGEST_SAMPLES, np.int16)

    def encode(self, mulaw: bytes) -> bytes:
        """Return the packet of a frame of 20 ms."""
        samples = decode_audio(mulaw, "mulaw").tobytes()
        size = self._library.opus_encode(self._encoder, samples, len(mulaw), self._packet, MOST_BYTES)
        return self._packet.raw[: max(size, 0)]

    def decode(self, payload: bytes) -> bytes:
        """Return the mu-law of a packet; nothing for a packet that is not Opus."""
        return self._decode(payload, LONGEST_SAMPLES, recovers=False)

    def recover(self, payload: bytes) -> bytes:
        """Return the mu-law of the lost packet of 20 ms before this one."""
        return self._decode(payload, FRAME_SAMPLES, recovers=True)

    def _decode(self, payload: bytes, samples: int, *, recovers: bool) -> bytes:
        if not payload:
            return b""  # For libopus, a lost packet of the longest duration.
        target = self._samples.ctypes.data
        count = self._library.opus_decode(self._decoder, payload, len(payload), target, samples, int(recovers))
        return encode_audio(self._samples[:count].copy(), "mulaw") if count > 0 else b""


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
