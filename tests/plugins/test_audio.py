"""G.711 in the SDK: all 65,536 samples and all 256 codes against the ITU-T reference algorithm."""

from collections.abc import Callable

import numpy as np
import pytest
from switchboard.plugin_sdk import Encoding
from switchboard.plugin_sdk.audio import SILENCE_CODE, decode_audio, encode_audio, transcode_audio

ALL_SAMPLES = np.arange(-32_768, 32_768).astype(np.int16)
ALL_CODES = bytes(range(256))


def compress_mulaw(sample: int) -> int:
    """`ulaw_compress` of the ITU-T Software Tool Library (Recommendation G.191, g711.c), line by line."""
    absno = ((~sample >> 2) + 33) if sample < 0 else (sample >> 2) + 33
    absno = min(absno, 0x1FFF)
    i, segno = absno >> 6, 1
    while i != 0:
        segno += 1
        i >>= 1
    high_nibble = 0x0008 - segno
    low_nibble = 0x000F - ((absno >> segno) & 0x000F)
    code = (high_nibble << 4) | low_nibble
    return code | 0x0080 if sample >= 0 else code


def compress_alaw(sample: int) -> int:
    """`alaw_compress` of the same library, line by line."""
    ix = ~sample >> 4 if sample < 0 else sample >> 4
    if ix > 15:
        iexp = 1
        while ix > 16 + 15:
            ix >>= 1
            iexp += 1
        ix -= 16
        ix += iexp << 4
    if sample >= 0:
        ix |= 0x0080
    return ix ^ 0x0055


def expand_mulaw(code: int) -> int:
    """`ulaw_expand` of the same library, line by line."""
    sign = -1 if code < 0x0080 else 1
    mantissa = ~code
    exponent = (mantissa >> 4) & 0x0007
    segment = exponent + 1
    mantissa &= 0x000F
    step = 4 << segment
    return sign * ((0x0080 << exponent) + step * mantissa + step // 2 - 4 * 33)


def expand_alaw(code: int) -> int:
    """`alaw_expand` of the same library, line by line."""
    ix = (code ^ 0x0055) & 0x007F
    iexp = ix >> 4
    mant = ix & 0x000F
    if iexp > 0:
        mant += 16
    mant = (mant << 4) + 0x0008
    if iexp > 1:
        mant <<= iexp - 1
    return mant if code > 127 else -mant


@pytest.mark.parametrize(("encoding", "compress"), [("mulaw", compress_mulaw), ("alaw", compress_alaw)])
def test_every_sample_is_encoded_as_in_the_itu_reference(encoding: Encoding, compress: Callable[[int], int]) -> None:
    assert encode_audio(ALL_SAMPLES, encoding) == bytes(compress(sample) for sample in ALL_SAMPLES.tolist())


@pytest.mark.parametrize(("encoding", "expand"), [("mulaw", expand_mulaw), ("alaw", expand_alaw)])
def test_every_code_is_decoded_as_in_the_itu_reference(encoding: Encoding, expand: Callable[[int], int]) -> None:
    assert decode_audio(ALL_CODES, encoding).tolist() == [expand(code) for code in ALL_CODES]


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_repeated_encoding_changes_nothing(encoding: Encoding) -> None:
    decoded = decode_audio(encode_audio(ALL_SAMPLES, encoding), encoding)
    assert np.array_equal(decode_audio(encode_audio(decoded, encoding), encoding), decoded)


def test_every_code_except_mulaw_negative_zero_survives_decoding() -> None:
    assert transcode_audio(transcode_audio(ALL_CODES, "alaw", "pcm16"), "pcm16", "alaw") == ALL_CODES
    mulaw = transcode_audio(transcode_audio(ALL_CODES, "mulaw", "pcm16"), "pcm16", "mulaw")
    assert mulaw == ALL_CODES.replace(b"\x7f", b"\xff")


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_silence_is_the_code_of_zero(encoding: Encoding) -> None:
    assert encode_audio(np.zeros(3, dtype=np.int16), encoding) == bytes([SILENCE_CODE[encoding]] * 3)


def test_pcm_is_little_endian() -> None:
    assert encode_audio(np.array([1, -2], dtype=np.int16), "pcm16") == b"\x01\x00\xfe\xff"
    assert decode_audio(b"\x01\x00\xfe\xff", "pcm16").tolist() == [1, -2]
