"""Quality of a call: losses, jitter, and an estimate of the mean opinion score."""

from dataclasses import dataclass
from typing import Final

BEST_RATING: Final = 93.2
"""Rating R of a line with the default values of ITU-T G.107, but for its delay and losses."""
LOSS_ROBUSTNESS: Final = 25.1
"""Bpl of G.711 with packet-loss concealment (ITU-T G.113, appendix I). The other codecs are rated like it."""
MOST_IMPAIRMENT: Final = 95.0


@dataclass(frozen=True, slots=True)
class MediaQuality:
    """Quality of the audio that was received, and what the far end reported about the audio sent to it.

    Shares are from 0 to 1. `loss_share`: packets that never came. `late_share`: packets that came after their time.
    `jitter_ms`: RFC 3550's estimate. `delay_ms`: delay of the jitter buffer. `round_trip_ms`: None before the far end
    reported. `remote_loss_share`: losses that the far end reported. `mos`: mean opinion score, from 1 to 4.4, by the
    E-model (ITU-T G.107).
    """

    packets_received: int
    packets_sent: int
    loss_share: float
    late_share: float
    jitter_ms: float
    delay_ms: float
    round_trip_ms: float | None
    remote_loss_share: float | None
    mos: float


def estimate_mos(loss_share: float, delay_ms: float) -> float:
    """Return the mean opinion score of G.711 with this share of lost packets, at random, and one-way delay."""
    loss = 100 * loss_share
    impairment = MOST_IMPAIRMENT * loss / (loss + LOSS_ROBUSTNESS)
    # The delay impairment of G.107 in the common approximation of Cole and Rosenbluth (2001).
    delay = 0.024 * delay_ms + (0.11 * (delay_ms - 177.3) if delay_ms > 177.3 else 0)
    rating = min(max(BEST_RATING - impairment - delay, 0), 100)
    return round(min(max(1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6, 1), 4.5), 2)
