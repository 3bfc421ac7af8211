"""Conversion of an agent's language (BCP 47) to the language codes of a vendor."""

from collections.abc import Sequence
from typing import Final

MULTIPLE_LANGUAGES: Final = "mul"
"""ISO 639 code for a conversation in multiple languages."""
NORWEGIAN: Final = ("nb", "nn")


def get_base_language(language: str) -> str:
    """Return the base language: `en` for `en-US`. Both written forms of Norwegian become `no`, which vendors use."""
    base = language.partition("-")[0].lower()
    return "no" if base in NORWEGIAN else base


def get_single_language(language: str) -> str | None:
    """Return the base language; None for multiple languages."""
    base = get_base_language(language)
    return None if base == MULTIPLE_LANGUAGES else base


def find_nearest_language(language: str, offered: Sequence[str]) -> str | None:
    """Return `language` if it is offered, else the first offered language with the same base language, else None."""
    if language in offered:
        return language
    base = get_base_language(language)
    return next((other for other in offered if get_base_language(other) == base), None)
