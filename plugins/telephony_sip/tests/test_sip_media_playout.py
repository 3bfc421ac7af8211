"""The jitter buffer on timelines that move, and in delay spikes, without a network."""

import random

import pytest
from switchboard_telephony_sip.media.audio_codecs import PcmuCodec
from switchboard_telephony_sip.media.playout import Fragment, PlayoutBuffer

FRAME_SECONDS, USUAL = 0.02, 0.01
TAIL = 100
"""Bytes after which a frame is its packet's again, after the transition from concealment."""


def make_payload(number: int) -> bytes:
    """Return a loud frame that no other packet has."""
    generator = random.Random(number)
    return bytes(0x10 + generator.randrange(0x20) | generator.choice((0, 0x80)) for _ in range(160))


def listen(delays: list[float]) -> list[int]:
    """Return the numbers of the packets that are heard, in order, of packets with these delays, in seconds."""
    buffer, codec, heard = PlayoutBuffer(), PcmuCodec(), []
    payloads = [make_payload(number) for number in range(len(delays))]
    numbers = {payload[TAIL:]: number for number, payload in enumerate(payloads)}
    arrivals = sorted((round(number * FRAME_SECONDS + delay, 6), number) for number, delay in enumerate(delays))
    for tick in range(len(delays) + 100):
        now = tick * FRAME_SECONDS
        while arrivals and arrivals[0][0] <= now:
            arrival, number = arrivals.pop(0)
            buffer.put(number * 160, Fragment(payloads[number], codec), arrival)
        if (found := numbers.get(buffer.take(now)[TAIL:])) is not None:
            heard.append(found)
    return heard


def list_lost(heard: list[int], first: int, count: int) -> list[int]:
    """List those of `count` packets that were not heard. Fails if any packet was heard twice, or after a later one."""
    assert heard == sorted(set(heard)), heard
    return [number for number in range(first, first + count) if number not in heard]


@pytest.mark.parametrize("stall", [0.1, 0.2, 0.3, 0.45, 0.8])
def test_a_sender_that_stalls_is_heard_again_at_once(stall: float) -> None:
    """A telephone that was busy leaves that time out of its timestamps, so that all later packets come later."""
    assert len(listen([USUAL] * 200)) > 190
    assert len(listen([USUAL] * 100 + [USUAL + stall] * 200)) > 300 - 30 - stall / FRAME_SECONDS


def test_a_path_that_becomes_shorter_again_loses_little() -> None:
    assert len(listen([USUAL] * 100 + [0.3] * 100 + [USUAL] * 200)) > 350


@pytest.mark.parametrize("packets", [5, 10, 13, 20])
def test_audio_that_was_held_up_and_comes_in_a_burst_is_heard_whole(packets: int) -> None:
    held = [USUAL + left * FRAME_SECONDS for left in range(packets, 0, -1)]
    assert list_lost(listen([USUAL] * 100 + held + [USUAL] * 300), 100, packets) == []


@pytest.mark.parametrize(("packets", "seconds"), [(20, 0.15), (20, 0.25), (100, 0.25)])
def test_a_delay_spike_loses_its_first_packets_only(packets: int, seconds: float) -> None:
    heard = listen([USUAL] * 100 + [USUAL + seconds] * packets + [USUAL] * 300)
    assert list_lost(heard, 100, 100) == [100, 101], "until the buffer has seen that the delay has grown"


@pytest.mark.parametrize(("packets", "later"), [(5, 2), (5, 6), (8, 4), (10, 10)])
def test_packets_that_others_have_overtaken_are_lost_without_a_new_timeline(packets: int, later: int) -> None:
    overtaken = [(packets + later - number) * FRAME_SECONDS + USUAL - 0.005 for number in range(packets)]
    heard = listen([USUAL] * 100 + overtaken + [USUAL] * 300)
    assert list_lost(heard, 100, 100) == list(range(100, 100 + packets))
