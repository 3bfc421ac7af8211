"""Decision whether a request is sent again, and when.

Every method may be repeated: POST carries an `Idempotency-Key`, and the server returns its first response again.
"""

import random
import re
from dataclasses import dataclass

import httpx2

from switchboard_client.errors import parse_problem

FIRST_DELAY = 0.5
LONGEST_DELAY = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds. A server that asks for more is not waited for: the error is raised at once."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Up to `max_retries` repetitions after a failed connection, 429, 5xx, or a 409 that says that the first attempt is
    still running.
    """

    max_retries: int

    def find_delay(self, attempt: int, response: httpx2.Response | None) -> float | None:
        """Return the seconds until the next attempt, None if there is none. `attempt` counts from 0; `response` is None
        if the connection failed.
        """
        if attempt >= self.max_retries or not (response is None or _is_temporary(response)):
            return None
        # Half of the delay is random, so that clients which failed together do not return together.
        backoff: float = min(FIRST_DELAY * 2**attempt, LONGEST_DELAY) * random.uniform(0.5, 1)  # noqa: S311 - no secret
        delay = _read_retry_after(response) if response is not None else None
        if delay is None:
            return backoff
        return delay if delay <= LONGEST_RETRY_AFTER else None


def _is_temporary(response: httpx2.Response) -> bool:
    if response.status_code == httpx2.codes.CONFLICT:
        return parse_problem(response.content).code == "idempotency_conflict"
    return response.status_code == httpx2.codes.TOO_MANY_REQUESTS or response.is_server_error


def _read_retry_after(response: httpx2.Response) -> float | None:
    """Return the seconds of `Retry-After`; the server never sends the date that RFC 9110 also allows."""
    value = response.headers.get("Retry-After", "")
    return float(value) if re.fullmatch(r"[0-9]+", value) else None
