"""The jitter buffer on timelines that move, without a network."""

import pytest
from switchboard_telephony_sip.media.audio_codecs import PcmuCodec
from switchboard_telephony_sip.media.playout import Fragment, PlayoutBuffer

VOICE = bytes([0x20, 0xA0] * 80)
FRAME_SECONDS = 0.02


def count_heard(shifts: list[float]) -> int:
    """Return how many frames of voice are heard of packets that come every 20 ms, each this much late, in seconds."""
    buffer, codec, heard = PlayoutBuffer(), PcmuCodec(), 0
    arrivals = sorted((number * FRAME_SECONDS + shift, number) for number, shift in enumerate(shifts))
    for tick in range(len(shifts) + 100):
        now = tick * FRAME_SECONDS
        while arrivals and arrivals[0][0] <= now:
            arrival, number = arrivals.pop(0)
            buffer.put(number * 160, Fragment(VOICE, codec), arrival)
        heard += buffer.take(now) == VOICE
    return heard


@pytest.mark.parametrize("stall", [0.1, 0.2, 0.3, 0.45, 0.8])
def test_a_sender_that_stalls_is_heard_again_at_once(stall: float) -> None:
    """A telephone that was busy leaves that time out of its timestamps, so that all later packets come later."""
    assert count_heard([0.01] * 200) > 190
    assert count_heard([0.01] * 100 + [0.01 + stall] * 200) > 300 - 30 - stall / FRAME_SECONDS


def test_a_path_that_becomes_shorter_again_loses_little() -> None:
    assert count_heard([0.01] * 100 + [0.3] * 100 + [0.01] * 200) > 350
