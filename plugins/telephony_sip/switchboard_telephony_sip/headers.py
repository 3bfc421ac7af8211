"""Headers of a call that are its metadata: those whose names begin with `X-`, in both directions."""

import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

MAX_HEADERS: Final = 20
MAX_VALUE: Final = 512
_NAME: Final = re.compile(r"[Xx]-[A-Za-z0-9-]{1,60}")
_VALUE: Final = re.compile(r"[^\x00-\x1f\x7f]{0,512}")


def choose_sip_headers(metadata: Mapping[str, JsonValue]) -> dict[str, str]:
    """Return the headers of an outbound call: the metadata that are named like one, and have a plain value.

    A value with a line break would write headers of its own, and is left out.
    """
    chosen = {}
    for name, value in metadata.items():
        if _NAME.fullmatch(name) and isinstance(value, str | int | float) and _VALUE.fullmatch(str(value)):
            chosen[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return dict(list(chosen.items())[:MAX_HEADERS])


def read_metadata(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of an inbound call: its `X-` headers, with their names in lower case."""
    chosen = {name.lower(): value[:MAX_VALUE] for name, value in headers.items() if _NAME.fullmatch(name)}
    return dict(list(chosen.items())[:MAX_HEADERS])
