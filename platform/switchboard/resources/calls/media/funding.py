"""Money for calls under way: a prepaid organization's call that cannot be paid for any longer is ended."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.foundation.database import now
from switchboard.foundation.web.errors import InsufficientBalance
from switchboard.resources.billing import ledger
from switchboard.resources.billing.costs import estimate_call_cost
from switchboard.resources.identity.service import get_policy
from switchboard.runtime import Runtime

logger = structlog.get_logger()
LEAD_TIME = timedelta(seconds=10)
"""How long before a minute begins its money is set aside: longer than the heartbeat's pause."""
MINUTE = timedelta(minutes=1)


class CallFunding:
    """What this process has set aside for its calls so far; the first minute is, before a call begins."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._minutes: dict[UUID, int] = {}

    async def extend(self, running: Collection[tuple[UUID, UUID, datetime]]) -> None:
        """Set the next minute aside for those (organization, id, start) whose organization pays beforehand."""
        self._minutes = {call_id: self._minutes.get(call_id, 1) for _, call_id, _ in running}
        for organization_id, call_id, started_at in running:
            minutes = (now() - started_at + LEAD_TIME) // MINUTE + 1
            if minutes > self._minutes[call_id]:
                await self._hold(organization_id, call_id, minutes)

    async def _hold(self, organization_id: UUID, call_id: UUID, minutes: int) -> None:
        try:
            async with self._runtime.database.tenant(organization_id) as session:
                prices = (await get_policy(session, organization_id)).prices
                await ledger.hold_funds(session, call_id, estimate_call_cost(prices, minutes=minutes))
        except InsufficientBalance:
            logger.warning(
                "call ended: the balance does not cover its next minute",
                call_id=str(call_id),
                organization_id=str(organization_id),
            )
            self._runtime.engine.hang_up(call_id, EndedReason.INSUFFICIENT_BALANCE)
        self._minutes[call_id] = minutes
