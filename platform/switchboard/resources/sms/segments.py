"""How many segments a text takes: carriers cut it into messages of 140 bytes and ask for each of them.

GSM 03.38: 160 characters, 153 in each segment of several, where those of the extension table count twice; any other character makes the whole
text UCS-2: 70 units of UTF-16, 67 in each segment of several. A pair of units is never cut in two.
"""

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")
SEPTETS, SEPTETS_OF_SEVERAL = 160, 153
UNITS, UNITS_OF_SEVERAL = 70, 67


def segments(body: str) -> int:
    """At least one, for an empty text too."""
    if all(letter in BASIC or letter in EXTENSION for letter in body):
        return _filled([2 if letter in EXTENSION else 1 for letter in body], SEPTETS, SEPTETS_OF_SEVERAL)
    return _filled([2 if ord(letter) > 0xFFFF else 1 for letter in body], UNITS, UNITS_OF_SEVERAL)


def _filled(sizes: list[int], alone: int, of_several: int) -> int:
    if sum(sizes) <= alone:
        return 1
    count, room = 1, of_several
    for size in sizes:
        if size > room:
            count, room = count + 1, of_several
        room -= size
    return count
