"""Pressed keys: telephone-event packets (RFC 4733) in both directions, and keys in SIP INFO."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from aiortp.dtmf import DTMF_EVENTS, EVENT_TO_DIGIT, DtmfEvent

from switchboard_telephony_sip.media.rtp import TIMESTAMP_CYCLE, RtpPacket

PAUSES: Final = {"w": 25, "W": 50}
"""Ticks of 20 ms that a pause between digits takes: half a second, and a second."""
PRESS_TICKS, GAP_TICKS = 5, 5
END_PACKETS: Final = 3
VOLUME: Final = 10
"""Volume of a key in -dBm0."""

_INFO_SIGNAL: Final = re.compile(r"^\s*signal\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)


def check_digits(digits: str) -> str:
    """Return keys and pauses in upper case, except `w`; raise `ValueError` for anything else."""
    keys = "".join(key if key in PAUSES else key.upper() for key in digits)
    if not all(key in DTMF_EVENTS or key in PAUSES for key in keys):
        raise ValueError(f"{digits!r} has keys that no telephone has: 0-9, *, #, A-D, and w for a pause")
    return keys


def parse_info_digit(body: str) -> str | None:
    """Return the key of a SIP INFO body: `Signal=5` (application/dtmf-relay), or the key alone (application/dtmf)."""
    match = _INFO_SIGNAL.search(body)
    key = (match.group(1) if match else body).strip().upper()
    if key in DTMF_EVENTS:
        return key
    # Some senders write the event's number.
    return EVENT_TO_DIGIT.get(int(key)) if re.fullmatch(r"1[0-5]", key, re.ASCII) else None


class DigitReceiver:
    """Finds keys in telephone-event packets. A key counts once, at its first packet, so that losses delay nothing."""

    def __init__(self) -> None:
        self._timestamp: int | None = None
        self._last = DtmfEvent(-1, end=True, volume=0, duration=0)

    def take(self, packet: RtpPacket) -> str | None:
        """Return the key that a packet begins, None for all others."""
        if len(packet.payload) < 4:
            return None
        event, last = DtmfEvent.parse(packet.payload), self._last
        began = self._timestamp
        is_known = began is not None and (began - packet.timestamp) % TIMESTAMP_CYCLE < 1 << 16
        # Some gateways give each packet of a key a timestamp of its own.
        goes_on = not last.end and event.event == last.event and event.duration > last.duration
        if is_known and packet.timestamp != began:
            return None
        self._timestamp, self._last = packet.timestamp, event
        return None if is_known or goes_on else EVENT_TO_DIGIT.get(event.event)


class EventPacket(NamedTuple):
    """Payload to send in a tick, for the key that began `age` ticks ago."""

    payload: bytes
    age: int


def make_event_packets(keys: str, tick_units: int) -> Iterator[tuple[EventPacket, ...]]:
    """Yield the packets of each tick of 20 ms that keys take; none in pauses.

    `tick_units`: duration of a tick in units of the clock. The end is sent three times in one tick.
    """
    for key in keys:
        if key in PAUSES:
            yield from [()] * PAUSES[key]
            continue
        for age in range(PRESS_TICKS):
            is_end = age == PRESS_TICKS - 1
            event = DtmfEvent(DTMF_EVENTS[key], end=is_end, volume=VOLUME, duration=(age + 1) * tick_units)
            packet = EventPacket(event.serialize(), age)
            yield (packet,) * (END_PACKETS if is_end else 1)
        yield from [()] * GAP_TICKS
