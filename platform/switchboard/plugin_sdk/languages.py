"""An agent's language (BCP 47) in the words of vendors that know only some, and each its own."""

from collections.abc import Sequence
from typing import Final

SEVERAL: Final = "mul"
"""ISO 639's code where people change between languages."""
NORWEGIAN: Final = ("nb", "nn")


def base_language(language: str) -> str:
    """`en` of `en-US`; vendors know both ways to write Norwegian as `no`."""
    base = language.partition("-")[0].lower()
    return "no" if base in NORWEGIAN else base


def single_language(language: str) -> str | None:
    """The base language, None where there are several."""
    base = base_language(language)
    return None if base == SEVERAL else base


def nearest_language(language: str, offered: Sequence[str]) -> str | None:
    """The language itself, else the first that is offered of another region, else None."""
    if language in offered:
        return language
    base = base_language(language)
    return next((other for other in offered if base_language(other) == base), None)
