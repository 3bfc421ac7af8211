"""How long a vendor is waited for, and how often asked: what carriers have in common, whose requests a caller waits for."""

import asyncio
import random
from collections.abc import Mapping
from typing import Final

ATTEMPTS: Final = 3
CONNECT_SECONDS: Final = 4.0
ATTEMPT_SECONDS: Final = 10.0
ALL_SECONDS: Final = 20.0
"""The platform waits 30 seconds for a carrier."""
BACKOFF_SECONDS: Final = 0.4
LONGEST_WAIT_SECONDS: Final = 5.0
"""A vendor that asks for more patience is not asked again."""


def retry_after(headers: Mapping[str, str]) -> float:
    """How many seconds the vendor wants to be left alone, by an answer's headers; 0 where it does not say."""
    told = headers.get("Retry-After", "")
    return float(told) if told.isdecimal() else 0.0


async def pause(attempt: int, least: float = 0.0) -> None:
    """Wait before the attempt that follows this one (the first is 1): longer each time, and not as long as others do."""
    longest = BACKOFF_SECONDS * 2 ** (attempt - 1)
    await asyncio.sleep(max(least, random.uniform(longest / 2, longest)))  # noqa: S311  jitter
