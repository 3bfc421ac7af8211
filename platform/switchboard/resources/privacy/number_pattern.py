"""Regular expressions for one phone number as people and programs write it."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import phonenumbers
from pydantic import JsonValue

REPLACEMENT: Final = "[erased]"
SHORTEST_BARE_NUMBER: Final = 9
"""Digits from which on a number counts without its `+`: shorter runs of digits are too often something else."""
_SEPARATORS: Final = r"[ ().\-/\u00a0]{0,3}"


@dataclass(frozen=True)
class NumberPattern:
    """An E.164 number in a text: with `+`, `00`, or `011`, bare, or in its national form, and with separators.

    `expression` means the same to PostgreSQL and to Python. Spoken digits ("five five five") do not match.
    """

    phone_number: str

    @cached_property
    def expression(self) -> str:
        """The regular expression."""
        parsed = phonenumbers.parse(self.phone_number, None)
        code, national = str(parsed.country_code), phonenumbers.national_significant_number(parsed)
        international = _spell(code + national)
        forms = [rf"(?:\+|00|011){_SEPARATORS}{international}"]
        if len(code + national) >= SHORTEST_BARE_NUMBER:
            forms.append(international)
        if len(national) >= SHORTEST_BARE_NUMBER:
            forms.append(rf"\(?0?{_SEPARATORS}{_spell(national)}")
        return f"(?<![0-9])(?:{'|'.join(forms)})(?![0-9])"

    def redact(self, value: JsonValue) -> JsonValue:
        """Replace the number in a text, and in every text, number, and key of a JSON value."""
        if isinstance(value, str):
            return self._compiled.sub(REPLACEMENT, value)
        if isinstance(value, list):
            return [self.redact(part) for part in value]
        if isinstance(value, dict):
            return {self._compiled.sub(REPLACEMENT, name): self.redact(part) for name, part in value.items()}
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return REPLACEMENT if is_number and self._compiled.search(str(value)) else value

    def occurs_in(self, text: str) -> bool:
        return self._compiled.search(text) is not None

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.expression)


def _spell(digits: str) -> str:
    return _SEPARATORS.join(digits)
