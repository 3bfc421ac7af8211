"""Spoken numbers as digits, in English, German, Spanish, and French, with their places in the original text."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

from switchboard.plugin_sdk.languages import get_base_language

NUMBERS: Final[Mapping[str, str]] = {
    "en": (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen"
    ),
    "de": (
        "null eins zwei drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn funfzehn sechzehn "
        "siebzehn achtzehn neunzehn"
    ),
    "es": (
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciseis "
        "diecisiete dieciocho diecinueve"
    ),
    "fr": (
        "zero un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
        "dix-huit dix-neuf"
    ),
}
"""Words for 0 to 19, without accents."""
TENS: Final[Mapping[str, str]] = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig funfzig sechzig siebzig achtzig neunzig",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
}
OTHER_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {"oh": "0"},
    "de": {"zwo": "2", "fuenf": "5", "zwoelf": "12", "dreissig": "30"},
    "es": {"un": "1", "una": "1"},
    "fr": {"une": "1", "septante": "70", "huitante": "80", "nonante": "90", "quatre-vingt": "80"},
}
DOUBLES: Final = {"double": 2, "triple": 3, "doble": 2, "doppel": 2}
FILLERS: Final = "uh um uhm er erm ah ahm hm hmm eh este euh also then dann luego puis and und y et"
HYPHENS: Final = (
    "dash", "hyphen", "minus", "underscore", "bindestrich", "unterstrich", "guion", "guion bajo", "tiret", "tiret bas",
)  # fmt: skip
BETWEEN: Final = re.compile(r"[\s,.-]*")


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """A text with its spoken numbers as digits; `places` are the start and end of each character in the original."""

    text: str
    places: tuple[tuple[int, int], ...]

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Convert a span of the normalized text to one of the original."""
        return self.places[start][0], self.places[end - 1][1]


def normalize_numbers(text: str, language: str) -> NormalizedText:
    """Replace spoken numbers by their digits: "four one double five" becomes `4155`.

    `language` is BCP 47; one that has no words here (`mul`, for example) uses those of every language.
    """
    found, places, end = list[str](), list[tuple[int, int]](), 0
    for start, until, replacement in _replace_words(text, get_base_language(language)):
        joined = found and replacement.isdigit() and found[-1].isdigit() and BETWEEN.fullmatch(text, end, start)
        for place in range(end, start) if not joined else ():
            found.append(text[place])
            places.append((place, place + 1))
        for character in replacement:
            found.append(character)
            places.append((start, until))
        end = until
    places += [(place, place + 1) for place in range(end, len(text))]
    return NormalizedText("".join(found) + text[end:], tuple(places))


def strip_accents(text: str) -> str:
    """Return a text of the same length in lower case, without accents."""
    return "".join(unicodedata.normalize("NFD", character)[0].lower()[:1] or character for character in text)


def _replace_words(text: str, language: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end, and replacement of each number, filler, and hyphen."""
    folded, pattern, values = strip_accents(text), *_build_pattern(language)
    place = 0
    while (match := pattern.search(folded, place)) is not None:
        place = match.end()
        times = DOUBLES.get(match["times"] or "", 1)
        word = re.sub(r"[\s-]+", " ", match["word"])
        yield match.start(), match.end(), values[word] * times


@cache
def _build_pattern(language: str) -> tuple[re.Pattern[str], Mapping[str, str]]:
    """Build the pattern of a language's words, longest first, and what replaces them."""
    languages = [language] if language in NUMBERS else list(NUMBERS)
    numbers = dict(chain.from_iterable(_list_numbers(name) for name in languages))
    values = {word.replace("-", " "): digits for word, digits in numbers.items()}
    values |= dict.fromkeys(FILLERS.split(), " ") | dict.fromkeys(HYPHENS, "-")
    words = "|".join(
        re.escape(word).replace(r"\ ", r"[\s-]+") for word in sorted(values, key=lambda word: (-len(word), word))
    )
    times = "|".join(DOUBLES)
    return re.compile(rf"(?<![^\W_])(?:(?P<times>{times})[\s-]*)?(?P<word>{words})(?![^\W_])"), values


def _list_numbers(language: str) -> Iterator[tuple[str, str]]:
    """Yield the words and digits of the numbers from 0 to 99."""
    small = NUMBERS[language].split()
    yield from ((word, str(number)) for number, word in enumerate(small))
    for ten, word in enumerate(TENS[language].split(), 2):
        yield word, str(10 * ten)
        for unit in range(1, 10):
            for spelling in _join(language, small, word, ten, unit):
                yield spelling, str(10 * ten + unit)
    yield from OTHER_WORDS[language].items()


def _join(language: str, small: Sequence[str], word: str, ten: int, unit: int) -> tuple[str, ...]:
    """Return the spellings of a number from 21 to 99."""
    if language == "de":
        return (f"{small[unit].removesuffix('s') if unit == 1 else small[unit]}und{word}",)
    if language == "es":
        return (f"{word} y {small[unit]}", *((f"veinti{small[unit]}",) if ten == 2 else ()))
    if language == "fr":
        base, rest = (word.removesuffix("-dix"), small[unit + 10]) if ten in (7, 9) else (word, small[unit])
        base = base.removesuffix("s") if ten == 8 else base
        return (f"{base}-{rest}", f"{base} et {rest}")
    return (f"{word}-{small[unit]}",)
