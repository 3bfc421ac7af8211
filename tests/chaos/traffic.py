"""Traffic through the balancer: callers, and API clients that retry as a careful client does."""

import asyncio
import random
import wave
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

import aiohttp
from switchboard.foundation.database import now
from switchboard.plugin_sdk import CallProgress, ProviderError, SimulatedCarrier, SpokenLine
from switchboard.resources.phone_numbers.purchases import build_callback_urls
from switchboard.runtime import Runtime

from tests.fixtures.app import LivePlatform
from tests.fixtures.caller_voice import speak_as_caller

RETRY_SECONDS, MOST_TRIES = 0.2, 200
THINKING_SECONDS = 4
CALLER = "+15550100001"
QUESTIONS = 60
"""Questions of a caller who talks, for longer than a test has."""


@dataclass(slots=True)
class Outcome:
    """Experience of the clients: answers by status, the contacts that were accepted, and the carrier's calls."""

    statuses: Counter[int] = field(default_factory=Counter)
    contacts: set[str] = field(default_factory=set)
    carrier_calls: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """Why calls were not answered, by the carrier's id."""
    failures: list[str] = field(default_factory=list)
    """Requests that were not served: the time, the request, and what answered instead."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Clients of one organization, until `stop` is set."""

    runtime: Runtime
    carrier: SimulatedCarrier
    """Taken before anything fails: to take one reads the database."""
    url: str
    organization_id: UUID
    api_key: str
    number: str
    live: LivePlatform
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    outcome: Outcome = field(default_factory=Outcome)

    async def keep_calling(self, seconds: tuple[float, float], folder: Path) -> None:
        """Call again and again; each call lasts so long, at least and at most, after the greeting."""
        while not self.stop.is_set():
            silence = write_silence(folder / f"{uuid4().hex}.wav", random.uniform(*seconds))
            await self._call([SpokenLine(wav=silence)])
            silence.unlink()

    async def talk(self, question: Path, heard: Callable[[], None]) -> None:
        """Call once, and ask the same question until nobody wants to hear it any more; `heard` is called as the agent
        answers.
        """

        def listen(progress: CallProgress) -> None:
            if progress.stage == "agent_speaking":
                heard()

        await self._call([SpokenLine(wav=question)] * QUESTIONS, listen)

    async def keep_writing(self, pause: float) -> None:
        """Create contacts, each with its idempotency key until it is accepted, and list them."""
        async with aiohttp.ClientSession(self.url, headers={"Authorization": f"Bearer {self.api_key}"}) as http:
            while not self.stop.is_set():
                number = f"+1555{random.randrange(10**7):07}"
                if number not in self.outcome.contacts:
                    await self._create_contact(http, number)
                await self._request(http, "GET", "/v1/contacts")
                await asyncio.sleep(pause)

    async def _call(self, lines: list[SpokenLine], progress: Callable[[CallProgress], None] | None = None) -> None:
        callbacks = build_callback_urls(self.url, self.organization_id, "loopback")
        try:
            call = await self.carrier.simulate_call(
                from_number=CALLER, to_number=self.number, lines=lines, callbacks=callbacks, progress=progress
            )
        except ProviderError as error:
            self.outcome.refused[uuid4().hex] = f"{_clock()} {error.message}"
            return
        if call.answered:
            self.outcome.carrier_calls.append(call.carrier_call_id)
        else:
            self.outcome.refused[call.carrier_call_id] = f"{_clock()} {call.refused_reason}"

    async def _create_contact(self, http: aiohttp.ClientSession, number: str) -> None:
        key = uuid4().hex
        for _ in range(MOST_TRIES):
            status = await self._request(
                http, "POST", "/v1/contacts", json={"phone_number": number}, headers={"Idempotency-Key": key}
            )
            if status == 201:
                self.outcome.contacts.add(number)
                return
            await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError(f"a contact was not accepted in {MOST_TRIES} tries")

    async def _request(
        self,
        http: aiohttp.ClientSession,
        method: str,
        path: str,
        *,
        json: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> int:
        """Return the status of the answer; 0 if there was none."""
        status = 0
        try:
            async with http.request(method, path, json=json, headers=headers) as response:
                answer = await response.text()
                status = response.status
        except aiohttp.ClientError as error:
            answer = repr(error)
        self.outcome.statuses[status] += 1
        if not 200 <= status < 300:
            self.outcome.failures.append(f"{_clock()} {method} {path} {status} {answer}")
        return status


def _clock() -> str:
    """Return the time of day, to find what the balancer's log says of it."""
    return now().strftime("%H:%M:%S.%f")


def write_silence(path: Path, seconds: float) -> Path:
    """Write a WAV file of a person who says nothing."""
    return _write_wav(path, bytes(2 * round(8000 * seconds)))


def write_question(path: Path) -> Path:
    """Write a WAV file of a person who thinks for some seconds, and asks what the agent of the bakery can answer."""
    return _write_wav(path, bytes(2 * 8000 * THINKING_SECONDS) + speak_as_caller("what are your opening hours"))


def _write_wav(path: Path, samples: bytes) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(samples)
    return path
