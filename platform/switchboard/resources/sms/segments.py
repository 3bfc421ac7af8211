"""Number of segments of a text message: carriers split it into units of 140 bytes and bill each.

GSM 03.38: 160 characters, or 153 per segment of several, and characters of the extension table count twice. Any other
character makes the whole text UCS-2: 70 UTF-16 units, or 67 per segment of several. A surrogate pair is never split.
"""

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ "
    "!\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")
SEPTETS, SEPTETS_OF_SEVERAL = 160, 153
UNITS, UNITS_OF_SEVERAL = 70, 67


def count_segments(body: str) -> int:
    """Count the segments; at least one, even for an empty text."""
    if all(letter in BASIC or letter in EXTENSION for letter in body):
        return _count_filled([2 if letter in EXTENSION else 1 for letter in body], SEPTETS, SEPTETS_OF_SEVERAL)
    return _count_filled([2 if ord(letter) > 0xFFFF else 1 for letter in body], UNITS, UNITS_OF_SEVERAL)


def _count_filled(sizes: list[int], alone: int, of_several: int) -> int:
    if sum(sizes) <= alone:
        return 1
    count, room = 1, of_several
    for size in sizes:
        if size > room:
            count, room = count + 1, of_several
        room -= size
    return count
