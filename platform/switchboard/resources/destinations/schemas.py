"""Form of the destinations that owners close."""

import re
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from switchboard.foundation.web.schemas import RequestBody
from switchboard.resources.identity.policy import require_country

_PREFIX: Final = re.compile(r"\+[1-9]\d{0,14}")


def _split_words(given: JsonValue) -> JsonValue:
    return re.split(r"[\s,;]+", given.strip().upper()) if isinstance(given, str) else given


def _require_prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        raise ValueError(f"{text[:20]} is not the beginning of a number in E.164, such as +4930")
    return text


def _check_each(check: Callable[[str], str]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Check every word of a field, whose error is the field's: it is one text box."""
    return lambda words: tuple(dict.fromkeys(map(check, words)))


class NarrowedDestinations(RequestBody):
    """Numbers that an organization closes for itself, besides those that its policy closes.

    `countries` are ISO 3166 alpha-2 codes of the only countries to call and text; empty: all of the policy. `block` are
    the first digits of numbers in E.164. Both may be one text of words.
    """

    countries: Annotated[
        tuple[str, ...], BeforeValidator(_split_words), AfterValidator(_check_each(require_country))
    ] = Field((), max_length=300)
    block: Annotated[tuple[str, ...], BeforeValidator(_split_words), AfterValidator(_check_each(_require_prefix))] = (
        Field((), max_length=1000)
    )
