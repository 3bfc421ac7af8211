"""Forms of carriers' callbacks: parsed before their signature is verified, and read after it."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from switchboard.plugin_sdk.callbacks import InvalidCallback

MAX_FIELDS: Final = 500


def parse_callback_form(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form, in order, each as a name and a value. Raises `InvalidCallback` for other bytes."""
    try:
        return parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise InvalidCallback("the body is not a form") from None


class CallbackFields:
    """Fields of a verified callback, validated as they are read."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def get(self, name: str) -> str:
        """Return a field; empty if the carrier omits it."""
        return self._fields.get(name, "")

    def require(self, name: str, form: re.Pattern[str], noun: str) -> str:
        """Return a field that has a form, such as the carrier's `noun`. Raises `InvalidCallback`."""
        value = self.get(name)
        if not form.fullmatch(value):
            raise InvalidCallback(f"{name} is not {noun}")
        return value

    def integer(self, name: str) -> int | None:
        """Return a whole number of at most nine digits; None for anything else."""
        value = self.get(name)
        return int(value) if value.isdecimal() and len(value) < 10 else None
