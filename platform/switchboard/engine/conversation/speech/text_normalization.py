"""Text normalization for speech: markup is removed, and addresses and numbers become words.

Models write `**$1,250.50** at https://www.acme.com`; some voices read that well, others spell the asterisks. Addresses
become words in the languages of `MARKS`, phone numbers are read digit by digit in all languages, and numbers, money,
dates, and times become words in English; voices of other languages read these themselves.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from switchboard.plugin_sdk.languages import get_base_language


class Piece(NamedTuple):
    """A part of a text, as it is written and as it is read aloud. Joined, the written parts are the text."""

    written: str
    spoken: str


Match: TypeAlias = "re.Match[str]"


class ReadingRule(NamedTuple):
    """A pattern and the function that words its matches."""

    pattern: re.Pattern[str]
    read: Callable[[Match], str]


class Marks(NamedTuple):
    """Names of the punctuation marks in addresses."""

    dot: str
    at: str
    slash: str
    dash: str
    underscore: str


ENGLISH: Final = "en"
MARKS: Final[Mapping[str, Marks]] = {
    "en": Marks("dot", "at", "slash", "dash", "underscore"),
    "de": Marks("Punkt", "at", "Schrägstrich", "Bindestrich", "Unterstrich"),
    "es": Marks("punto", "arroba", "barra", "guion", "guion bajo"),
    "fr": Marks("point", "arobase", "barre oblique", "tiret", "tiret bas"),
    "it": Marks("punto", "chiocciola", "barra", "trattino", "trattino basso"),
    "nl": Marks("punt", "apenstaartje", "schuine streep", "streepje", "laag streepje"),
    "pt": Marks("ponto", "arroba", "barra", "hífen", "sublinhado"),
}
MONEY: Final = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "penny"),
    "¥": ("yen", "sen"),
    "₹": ("rupee", "paisa"),
}
PLURALS: Final = {"penny": "pence", "yen": "yen", "sen": "sen", "paisa": "paise"}
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

NUMBER: Final = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
FREE: Final = r"(?<![\w.,])"
ALONE: Final = r"(?![\w%])"
SCALE: Final = r"thousand|million|billion|trillion"

TELEPHONE: Final = "|".join(
    (
        r"\+\d(?:[\s().–-]{0,2}\d){6,14}",
        r"\(\d{2,5}\)\s?\d(?:[\s.–-]?\d){5,9}",
        r"\d{3}[\s.–-]\d{3}[\s.–-]\d{4}",
        r"\d{3}[.–-]\d{4}",
        r"0\d{1,5}[\s/-]\d(?:[\s-]?\d){4,9}",
        r"\d{10,15}",
    )
)


def normalize_text(text: str, language: str, pronunciations: Mapping[str, str] | None = None) -> list[Piece]:
    """Split a text into pieces with their readings.

    `language` is BCP 47. `pronunciations` maps words, in any case, to the agent's readings.
    """
    base = get_base_language(language)
    rules = (*_build_agent_rules(tuple((pronunciations or {}).items())), *_build_rules(base))
    found, at = list[Piece](), 0
    # Each rule keeps its next match until it is passed, so that a long text is not searched again for each match.
    ahead = [(match, rule) for rule in rules if (match := rule.pattern.search(text))]
    while ahead:
        match, rule = min(ahead, key=lambda found: found[0].start())
        found += _split_words(text[at : match.start()])
        found.append(Piece(match[0], rule.read(match)))
        at = match.end()
        ahead = [
            (later, rule)
            for match, rule in ahead
            if (later := match if match.start() >= at else rule.pattern.search(text, at))
        ]
    return found + _split_words(text[at:])


def find_heard_text(text: Sequence[Piece], spoken_letters: int) -> str:
    """Return the text of the first pieces whose reading has at most this many letters and digits."""
    written = ""
    for piece in text:
        spoken_letters -= count_letters(piece.spoken)
        if spoken_letters < 0:
            break
        written += piece.written
    return written.strip()


def count_letters(text: str) -> int:
    """Count letters and digits: voices divide a text into words in different ways but speak all of its letters."""
    return sum(character.isalnum() for character in text)


def _split_words(text: str) -> list[Piece]:
    return [Piece(word, word) for word in re.findall(r"\s*\S+|\s+", text)]


@cache
def _build_agent_rules(pronunciations: tuple[tuple[str, str], ...]) -> tuple[ReadingRule, ...]:
    if not pronunciations:
        return ()
    by_word = {word.lower(): spoken for word, spoken in pronunciations}
    longest_first = sorted(by_word, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return (ReadingRule(re.compile(pattern, re.IGNORECASE), lambda match: by_word[match[0].lower()]),)


@cache
def _build_rules(language: str) -> tuple[ReadingRule, ...]:
    marks = MARKS.get(language)
    rules = [
        _rule(r"\[([^\]\n]{1,300})\]\((?:[^()\s]|\([^()\s]*\))+\)", lambda match: match[1]),
        _rule(r"(?<!\S)[-–—*_=]{3,}(?!\S)", lambda _: ""),
        _rule(r"^[ \t]*(?:#{1,6}|[-*•]|>)\s+", lambda _: ""),
        _rule(r"\*+|~~|`+|(?<!\w)_+(?=\w)|(?<=[\w.,!?])_+(?!\w)", lambda _: ""),
        _rule(rf"(?<![\w.,+$€£¥₹-])(?:{TELEPHONE})(?![\w%]|[.,]\d)", _build_telephone_reader(language)),
    ]
    if marks is not None:

        def read_url(match: Match) -> str:
            return _read_address(re.sub(r"^(?:https?://)?(?:www\.)?|[?#].*$|/$", "", match[0]), marks)

        rules.append(_rule(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", lambda match: _read_address(match[0], marks)))
        rules.append(_rule(r"(?:https?://|www\.)[^\s<>\"']*[\w/]", read_url))
    return (*rules, *(_build_english_rules() if language == ENGLISH else ()))


def _rule(pattern: str, read: Callable[[Match], str]) -> ReadingRule:
    return ReadingRule(re.compile(pattern, re.MULTILINE), read)


def _build_telephone_reader(language: str) -> Callable[[Match], str]:
    def read(match: Match) -> str:
        groups = re.findall(r"\d+", match[0])
        if len(groups) == 1:  # as people write down a number: the last four, with groups of three before them
            number = groups[0]
            ends = [*range(len(number) - 4, 0, -3)][::-1]
            groups = [number[start:end] for start, end in pairwise([0, *ends, len(number)])]
        plus = ("plus " if language == ENGLISH else "+") if match[0].startswith("+") else ""
        return plus + ", ".join(spell_digits(group) if language == ENGLISH else " ".join(group) for group in groups)

    return read


def _read_address(address: str, marks: Marks) -> str:
    names = dict(zip(".@/-_", marks, strict=True))
    return " ".join(re.sub(r"[.@/_-]", lambda match: f" {names[match[0]]} ", address).split())


def _build_english_rules() -> tuple[ReadingRule, ...]:
    symbols = "".join(MONEY)
    return (
        _rule(rf"{FREE}(\d{{4}})-(\d\d)-(\d\d){ALONE}", _read_date),
        _rule(
            rf"([{symbols}])\s?({NUMBER})(?:\s?({SCALE}))?{ALONE}",
            lambda match: _read_money(match[1], match[2], match[3]),
        ),
        _rule(rf"{FREE}({NUMBER})\s?([{symbols}])(?!\w)", lambda match: _read_money(match[2], match[1], None)),
        _rule(rf"{FREE}(\d{{1,2}}):([0-5]\d)(?:\s?([ap])\.?m\b)?{ALONE}", _read_time),
        _rule(rf"{FREE}({NUMBER})\s?%", lambda match: f"{spell_decimal(match[1])} percent"),
        _rule(rf"{FREE}(\d{{1,4}})(?:st|nd|rd|th)\b", lambda match: spell_ordinal(int(match[1]))),
        _rule(r"#(?=\d)", lambda _: "number "),
        _rule(r"(?<=\d)\s?[-–]\s?(?=\d)", lambda _: " to "),
        _rule(rf"{FREE}(19\d\d|20\d\d)(?![\w%]|[.,]\d)", lambda match: spell_year(int(match[1]))),
        _rule(rf"(?<![\w.])({NUMBER}){ALONE}", lambda match: spell_decimal(match[1])),
        _rule(r"(?<=\s)&(?=\s)", lambda _: "and"),
    )


def _read_date(match: Match) -> str:
    month, day = int(match[2]), int(match[3])
    if not (1 <= month <= len(MONTHS) and 1 <= day <= 31):
        return spell_digits(match[0])
    return f"{MONTHS[month - 1]} {spell_ordinal(day)}, {spell_year(int(match[1]))}"


def _read_money(symbol: str, amount: str, scale: str | None) -> str:
    unit, part = MONEY[symbol]
    whole, _, fraction = amount.replace(",", "").partition(".")
    if scale is not None or len(fraction) not in {0, 2}:
        return f"{spell_decimal(amount)} {scale + ' ' if scale else ''}{_pluralize(unit)}"
    words = (
        [f"{spell_decimal(whole)} {unit if whole == '1' else _pluralize(unit)}"]
        if int(whole) or not int(fraction or 0)
        else []
    )
    if int(fraction or 0):
        words.append(f"{spell_cardinal(int(fraction))} {part if int(fraction) == 1 else _pluralize(part)}")
    return " and ".join(words)


def _pluralize(unit: str) -> str:
    return PLURALS.get(unit, f"{unit}s")


def _read_time(match: Match) -> str:
    hour, minute, half = int(match[1]), int(match[2]), match[3]
    if hour > 24:
        return f"{spell_cardinal(hour)} to {spell_cardinal(minute)}"
    minutes = "" if minute == 0 else f" oh {spell_cardinal(minute)}" if minute < 10 else f" {spell_cardinal(minute)}"
    if half:
        return f"{spell_cardinal(hour)}{minutes} {half} m"
    return f"{spell_cardinal(hour)}{minutes or (' o’clock' if 1 <= hour <= 12 else ' hundred hours')}"


# Numbers as English words.
#
# Libraries were measured instead in November 2026. inflect 7.6 (MIT) says the same numbers, and has no years, in
# 226 µs, where these functions take 7, on the event loop of the calls. It takes four seconds to import, 30 MB in each
# process, and three further packages. num2words 0.5.14 (LGPL, its last release is of December 2024) says other years
# ("nineteen oh-five").

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
