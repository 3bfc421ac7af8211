"""A carrier that outlives every process: it dials, reports what happens, sometimes twice, and opens media sockets."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar, cast
from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.plugin_sdk import (
    CallAnswered,
    CalleeRinging,
    CallEnded,
    IncomingCall,
    OutboundCall,
    OutcomeUnknown,
    Provider,
    ProviderError,
    ProviderSettings,
)
from switchboard.plugin_sdk.telephony import TelephonyCapabilities
from switchboard.plugin_sdk.telephony_events import CallEvent, CallOutcome
from switchboard.resources.calls.media.call_runner import CLAIM_SECONDS

from tests.interleavings.connections import Gate
from tests.interleavings.world import World

ProviderT = TypeVar("ProviderT", bound=Provider[ProviderSettings])

CARRIER: Final = "simulated"
TRIES: Final = 4
"""Number of times that the carrier sends a callback that is not answered with a success."""
RETRY_SECONDS: Final = 5.0
SHORT_OUTAGE: Final = CLAIM_SECONDS * 0.6
"""Length of an outage of the database, in seconds, that no call notices."""


class CarrierFacingServer(Protocol):
    """A server as the carrier reaches it. `reach` runs work in the process, and returns whether it succeeded."""

    gate: Gate
    died_at: datetime | None

    async def reach(self, work: Callable[[], Awaitable[object]]) -> bool: ...
    async def apply(self, event: CallEvent, call_id: UUID | None) -> None: ...
    async def announce(self, incoming: IncomingCall) -> str | None: ...
    async def converse(self, media_url: str, line: "Line") -> None: ...


@dataclass(eq=False)
class Line:
    """A call as the carrier has it. `reference` is the platform's id of a call that it has placed."""

    carrier_call_id: str
    to_number: str
    reference: str = ""
    is_over: bool = False
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Carrier:
    """The carrier. `servers` returns the servers that live; `dialed` counts the calls that it has placed by reference,
    and `numbers` by the number that was called.
    """

    world: World
    choices: random.Random
    servers: Callable[[], Sequence[CarrierFacingServer]]
    lines: dict[str, Line] = field(default_factory=dict)
    dialed: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)

    async def place_call(self, order: OutboundCall) -> str:
        """Place a call, refuse it, or say nothing."""
        fate = self.choices.random()
        await asyncio.sleep(self.choices.random())
        if fate < 0.08:
            raise ProviderError("all lines are busy", retryable=False)
        if fate < 0.12:
            raise OutcomeUnknown("no answer")
        line = self._add_line(order.to_number, order.reference)
        self.dialed[order.reference] += 1
        self.numbers[order.to_number] += 1
        self.world.start(self._dial(line, order.media_url))
        await asyncio.sleep(self.choices.random())
        if fate < 0.2:
            raise OutcomeUnknown("no answer")
        return line.carrier_call_id

    def find_call(self, reference: str) -> str | None:
        """Return the id of a call by the platform's."""
        return next((line.carrier_call_id for line in self.lines.values() if line.reference == reference), None)

    def hang_up(self, carrier_call_id: str) -> None:
        """End a call."""
        line = self.lines.get(carrier_call_id)
        if line is not None and not line.is_over:
            line.hung_up.set()
            self._end(line, "completed")

    def call_in(self, to_number: str) -> None:
        """Have somebody call one of the organization's numbers."""
        self.world.start(self._call_in(self._add_line(to_number), to_number))

    def _add_line(self, to_number: str, reference: str = "") -> Line:
        line = Line(f"line {len(self.lines)}", to_number, reference)
        self.lines[line.carrier_call_id] = line
        return line

    async def _dial(self, line: Line, media_url: str) -> None:
        await self._wait(line, 2)
        await self._report(line, CalleeRinging(line.carrier_call_id))
        await self._wait(line, 4)
        outcome: CallOutcome | None = self.choices.choice((None, None, None, "busy", "no-answer"))
        if outcome is not None:
            self._end(line, outcome)
            return
        await self._report(line, CallAnswered(line.carrier_call_id, "human"))
        await self._connect(line, media_url)

    async def _call_in(self, line: Line, to_number: str) -> None:
        incoming = IncomingCall(line.carrier_call_id, "+15550300001", to_number)
        answers = list[str | None]()
        copies = 2 if self.choices.random() < 0.5 else 1

        async def announce() -> bool:
            server = self._choose_server()

            async def ask() -> None:
                if server is not None:
                    answers.append(await server.announce(incoming))

            return server is not None and await server.reach(ask)

        for _ in range(TRIES):
            succeeded = await asyncio.gather(*(announce() for _ in range(copies)))
            if any(succeeded):
                break
            await asyncio.sleep(RETRY_SECONDS)
        media_url = next((answer for answer in answers if answer is not None), None)
        if media_url is None:
            self._end(line, "failed")
        else:
            await self._connect(line, media_url)

    async def _connect(self, line: Line, media_url: str) -> None:
        """Open the media socket. A call whose server dies stays with the carrier until somebody hangs up."""
        server = self._choose_server()
        if server is None or line.is_over:
            self._end(line, "failed")
        elif await server.reach(lambda: server.converse(media_url, line)):
            self._end(line, "completed")
        elif server.died_at is None:
            self._end(line, "failed")
            if self.world.longest_outage < SHORT_OUTAGE:
                self.world.complain(f"lost: {line.carrier_call_id} was answered, and no server took it")

    def _end(self, line: Line, outcome: CallOutcome) -> None:
        if not line.is_over:
            line.is_over = True
            line.hung_up.set()
            self.world.start(self._report(line, CallEnded(line.carrier_call_id, outcome)))

    async def _report(self, line: Line, event: CallEvent) -> None:
        """Send a callback, sometimes twice at once, and again while nobody takes it."""
        call_id = UUID(line.reference) if line.reference else None
        copies = 2 if self.choices.random() < 0.3 else 1

        async def send() -> bool:
            server = self._choose_server()
            return server is not None and await server.reach(lambda: server.apply(event, call_id))

        for _ in range(TRIES):
            if all(await asyncio.gather(*(send() for _ in range(copies)))):
                return
            await asyncio.sleep(RETRY_SECONDS)

    def _choose_server(self) -> CarrierFacingServer | None:
        servers = self.servers()
        return self.choices.choice(servers) if servers else None

    async def _wait(self, line: Line, seconds: float) -> None:
        try:
            async with asyncio.timeout(self.choices.random() * seconds):
                await line.hung_up.wait()
        except TimeoutError:
            return


@dataclass(frozen=True, slots=True)
class CarrierClient:
    """A process's client of the carrier, as the platform uses a provider. A dead process sends no request."""

    carrier: Carrier
    gate: Gate
    name: str = CARRIER
    title: str = CARRIER
    capabilities: TelephonyCapabilities = field(default_factory=TelephonyCapabilities)

    async def place_call(self, order: OutboundCall) -> str:
        await self._begin_request()
        return await self.carrier.place_call(order)

    async def find_call(self, reference: str) -> str | None:
        await self._begin_request()
        return self.carrier.find_call(reference)

    async def hang_up(self, carrier_call_id: str) -> None:
        await self._begin_request()
        self.carrier.hang_up(carrier_call_id)

    async def _begin_request(self) -> None:
        fault, self.gate.request_fault = self.gate.request_fault, None
        if fault is not None:
            fault()
        await asyncio.sleep(self.carrier.choices.random())
        if self.gate.is_dead:
            raise asyncio.CancelledError


class SimulatedProviders(Providers):
    """The providers of one process: the carrier, and nothing else."""

    def __init__(self, client: CarrierClient) -> None:
        self._client = client

    @asynccontextmanager
    async def use(
        self, organization_id: UUID, base: type[ProviderT], name: str | None = None
    ) -> AsyncIterator[ProviderT]:
        """Yield the carrier's client."""
        yield cast("Any", self._client)

    def close_idle(self) -> None:
        """Close nothing."""
