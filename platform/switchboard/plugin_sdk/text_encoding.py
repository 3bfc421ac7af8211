"""Segments of a text message: carriers split it into units of 140 bytes and bill each.

GSM 7-bit: 160 characters, or 153 per segment of several, and characters of the extension table count twice. Any other
character makes the whole text UCS-2: 70 UTF-16 units, or 67 per segment of several. A surrogate pair is never split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

GSM_BASIC: Final = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ "
    "!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
GSM_EXTENSION: Final = frozenset("\f^{}\\[~]|€")
SEPTETS, SEPTETS_OF_SEVERAL = 160, 153
UNITS, UNITS_OF_SEVERAL = 70, 67


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """A carrier's encoding of text messages, by default GSM 03.38.

    `basic` and `extension` are the characters that it sends in 7 bits, those of `extension` as two. `max_segments`: it
    refuses a message of more; None: it has no limit below that of the API, 1600 characters.
    """

    basic: frozenset[str] = GSM_BASIC
    extension: frozenset[str] = GSM_EXTENSION
    max_segments: int | None = None

    def count_segments(self, body: str) -> int:
        """Count the segments; at least one, even for an empty text."""
        if all(letter in self.basic or letter in self.extension for letter in body):
            return _count_filled([2 if letter in self.extension else 1 for letter in body], SEPTETS, SEPTETS_OF_SEVERAL)
        return _count_filled([2 if ord(letter) > 0xFFFF else 1 for letter in body], UNITS, UNITS_OF_SEVERAL)

    def can_send(self, segments: int) -> bool:
        """Return whether the carrier sends a message of this many segments."""
        return self.max_segments is None or segments <= self.max_segments


def _count_filled(sizes: Sequence[int], alone: int, of_several: int) -> int:
    if sum(sizes) <= alone:
        return 1
    count, left = 1, of_several
    for size in sizes:
        if size > left:
            count, left = count + 1, of_several
        left -= size
    return count
