"""Conversion of an agent's language (BCP 47) to the language codes of a vendor."""

from collections.abc import Mapping, Sequence
from typing import Final

MULTIPLE_LANGUAGES: Final = "mul"
"""ISO 639 code for a conversation in multiple languages."""
BASE_LANGUAGES: Final[Mapping[str, str]] = {
    "nb": "no", "nn": "no", "cmn": "zh", "yue": "zh", "arb": "ar", "iw": "he", "in": "id", "fil": "tl",
}  # fmt: skip
"""Languages that most vendors know by another code: written forms of Norwegian, members of the macrolanguages Chinese
and Arabic, deprecated codes, and Filipino, which has no code of two letters
(https://www.iana.org/assignments/language-subtag-registry).
"""


def get_base_language(language: str) -> str:
    """Return the base language as most vendors name it: `en` for `en-US`, `zh` for `cmn-CN`, `he` for `iw-IL`."""
    base = _get_primary_subtag(language)
    return BASE_LANGUAGES.get(base, base)


def get_single_language(language: str) -> str | None:
    """Return the base language; None for multiple languages."""
    base = get_base_language(language)
    return None if base == MULTIPLE_LANGUAGES else base


def find_nearest_language(language: str, offered: Sequence[str]) -> str | None:
    """Return `language` if it is offered, else the first offered language with the same base language, else None.

    Of several, `yue-HK` is nearest to `yue`, although Mandarin's `cmn-CN` has the same base language.
    """
    base, subtag = get_base_language(language), _get_primary_subtag(language)
    alike = [other for other in offered if get_base_language(other) == base]
    return min(alike, key=lambda other: (other != language, _get_primary_subtag(other) != subtag), default=None)


def _get_primary_subtag(language: str) -> str:
    return language.partition("-")[0].lower()
