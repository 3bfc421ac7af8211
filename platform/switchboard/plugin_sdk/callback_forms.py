"""Forms of carriers' callbacks, read before their signature is verified."""

from typing import Final
from urllib.parse import parse_qsl

from switchboard.plugin_sdk.telephony import InvalidCallback

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
