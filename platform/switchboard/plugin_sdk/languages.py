"""An agent's language (BCP 47) in the words of vendors that know only some, and each its own."""

from collections.abc import Sequence
from typing import Final

MULTIPLE_LANGUAGES: Final = "mul"
"""ISO 639's code where people change between languages."""
NORWEGIAN: Final = ("nb", "nn")


def get_base_language(language: str) -> str:
    """`en` of `en-US`; vendors know both ways to write Norwegian as `no`."""
    base = language.partition("-")[0].lower()
    return "no" if base in NORWEGIAN else base


def get_single_language(language: str) -> str | None:
    """The base language, None where there are several."""
    base = get_base_language(language)
    return None if base == MULTIPLE_LANGUAGES else base


def find_nearest_language(language: str, offered: Sequence[str]) -> str | None:
    """The language itself, else the first that is offered of another region, else None."""
    if language in offered:
        return language
    base = get_base_language(language)
    return next((other for other in offered if get_base_language(other) == base), None)
