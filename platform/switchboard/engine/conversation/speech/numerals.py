"""Numbers as English words.

Libraries were measured instead in November 2026. inflect 7.6 (MIT) says the same numbers, and has no years, in 226 µs,
where this module takes 7, on the event loop of the calls. It takes four seconds to import, 30 MB in each process, and
three further packages. num2words 0.5.14 (LGPL, its last release is of December 2024) says other years
("nineteen oh-five").
"""

from typing import Final

_SMALL: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = ("", " thousand", " million", " billion", " trillion")
_ORDINALS: Final = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
MAX_DIGITS: Final = 15
"""Maximum digits of a number that is read as one; longer ones are codes and are read digit by digit."""


def spell_digits(text: str) -> str:
    """Spell each digit by itself and skip all other characters."""
    return " ".join(_SMALL[int(digit)] for digit in text if digit.isdigit())


def spell_cardinal(number: int) -> str:
    """Spell a number of up to fifteen digits: `one thousand two hundred thirty-four`."""
    if number < 1000:
        return _spell_hundreds(number)
    groups = [(number // 1000**power % 1000, scale) for power, scale in enumerate(_SCALES)]
    return " ".join(_spell_hundreds(group) + scale for group, scale in reversed(groups) if group)


def _spell_hundreds(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        rest = number % 10
        return _TENS[number // 10 - 2] + (f"-{_SMALL[rest]}" if rest else "")
    rest = number % 100
    return f"{_SMALL[number // 100]} hundred" + (f" {_spell_hundreds(rest)}" if rest else "")


def spell_ordinal(number: int) -> str:
    """Spell an ordinal number: `twenty-first`."""
    words = spell_cardinal(number)
    at = max(words.rfind(" "), words.rfind("-")) + 1
    before, last = words[:at], words[at:]
    if last in _ORDINALS:
        return before + _ORDINALS[last]
    return before + (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")


def spell_decimal(text: str) -> str:
    """Spell a written number, which may have commas between thousands.

    `1,234.5` becomes `one thousand two hundred thirty-four point five`.
    """
    whole, _, fraction = text.replace(",", "").partition(".")
    if len(whole) > MAX_DIGITS or (len(whole) > 1 and whole.startswith("0")):
        return spell_digits(text)
    return spell_cardinal(int(whole or "0")) + (f" point {spell_digits(fraction)}" if fraction else "")


def spell_year(number: int) -> str:
    """Spell a year: `nineteen eighty-four`, `two thousand five`, `twenty twenty-six`."""
    century, rest = divmod(number, 100)
    if rest == 0 or 2000 <= number < 2010:
        return spell_cardinal(number) if number % 1000 < 10 else f"{spell_cardinal(century)} hundred"
    return f"{spell_cardinal(century)} {f'oh {_SMALL[rest]}' if rest < 10 else spell_cardinal(rest)}"
