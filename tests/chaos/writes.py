"""Writes to one server, again and again, as a client that waits for it to work again."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from uuid import uuid4

import aiohttp

from tests.chaos.traffic import Traffic

PATIENCE = aiohttp.ClientTimeout(total=5)
PAUSE_SECONDS = 0.1
_numbers: Iterator[int] = count()


@dataclass(slots=True)
class WriteProbe:
    """Creates contacts at a server until `traffic.stop` is set, each until it is accepted.

    `accepted_at` has the times of the accepted ones, and `failed_at` those of the failures, by the event loop's clock.
    """

    traffic: Traffic
    url: str
    accepted_at: list[float] = field(default_factory=list)
    failed_at: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)

    async def run(self) -> None:
        clock = asyncio.get_running_loop().time
        headers = {"Authorization": f"Bearer {self.traffic.api_key}"}
        async with aiohttp.ClientSession(self.url, headers=headers, timeout=PATIENCE) as http:
            while not self.traffic.stop.is_set():
                number, key = f"+1557{next(_numbers):07}", uuid4().hex
                while (status := await self._create_contact(http, number, key)) != 201:
                    self.failed_at.append(clock())
                    self.statuses.add(status)
                    if self.traffic.stop.is_set():
                        return
                    await asyncio.sleep(PAUSE_SECONDS)
                self.traffic.outcome.contacts.add(number)
                self.accepted_at.append(clock())
                await asyncio.sleep(PAUSE_SECONDS)

    async def _create_contact(self, http: aiohttp.ClientSession, number: str, key: str) -> int:
        """Return the status of the answer; 0 if there was none in time."""
        headers = {"Idempotency-Key": key}
        try:
            async with http.post("/v1/contacts", json={"phone_number": number}, headers=headers) as response:
                await response.read()
                return response.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    def is_back_since(self, moment: float) -> bool:
        """Return whether a write was accepted after a moment."""
        return bool(self.accepted_at) and self.accepted_at[-1] > moment

    def measure_outage(self, moment: float) -> tuple[float, float]:
        """Return the seconds from a moment to the first accepted write, and to the last failure before now."""
        first = min(at for at in self.accepted_at if at > moment)
        last = max((at for at in self.failed_at if at > moment), default=moment)
        return round(first - moment, 1), round(last - moment, 1)
