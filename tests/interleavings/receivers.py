"""The other side of the platform: receivers of webhooks, which remember what they got."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from switchboard.foundation.outbound import OutboundAnswer, OutboundClient, OutboundError
from switchboard.plugin_sdk.public_addresses import NetworkPolicy

from tests.fixtures.virtual_clock import CLOCK
from tests.interleavings.connections import Gate


@dataclass(slots=True)
class Receipt:
    """A request that the receiver got, and its status; None while it takes its time, or if the sender gave up."""

    at: float
    status: int | None = None


@dataclass(slots=True)
class WebhookEndpoint:
    """A receiver of webhooks that fails at times. `healthy_from` is when it stops failing."""

    choices: random.Random
    failure_share: float
    healthy_from: float
    receipts: dict[UUID, list[Receipt]] = field(default_factory=dict)

    async def answer(self, delivery_id: UUID, seconds: float) -> int:
        """Take a request, and return the status of the response. Raises `OutboundError`."""
        receipt = Receipt(CLOCK.read())
        self.receipts.setdefault(delivery_id, []).append(receipt)
        fails = CLOCK.read() < self.healthy_from and self.choices.random() < self.failure_share
        slow = self.choices.random() < 0.1
        await asyncio.sleep(min(seconds, self.choices.random() * (2 * seconds if slow and fails else 1)))
        if fails and slow:
            raise OutboundError("timeout")
        receipt.status = self.choices.choice((500, 503)) if fails else 200
        return receipt.status


class SimulatedOutbound(OutboundClient):
    """The client for requests of one process, which reach the receiver without a network."""

    def __init__(self, gate: Gate, endpoint: WebhookEndpoint) -> None:
        super().__init__(NetworkPolicy())
        self._gate = gate
        self._endpoint = endpoint

    async def post(
        self, url: str, body: bytes, *, headers: Mapping[str, str], seconds: float, read_limit: int = 0
    ) -> OutboundAnswer:
        """Send a POST, unless the process is dead."""
        if self._gate.is_dead:
            raise asyncio.CancelledError
        return OutboundAnswer(await self._endpoint.answer(UUID(headers["X-Webhook-Delivery-Id"]), seconds), b"")
