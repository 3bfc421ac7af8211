"""Limits of widgets: conversations in a minute, at the same time, and what they cost in a day."""

import math
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession, lock_name, new_id
from switchboard.foundation.web.errors import RateLimited, SpendLimitReached
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.billing.ledger import estimate_call_cost
from switchboard.resources.destinations.queries import read_counts_of_widget
from switchboard.resources.destinations.service import merge_if_many
from switchboard.resources.identity.service import get_policy
from switchboard.resources.widgets.models import Widget, WidgetSession

UNANNOUNCED: Final = timedelta(minutes=1)
"""Time for which a voice call that its carrier has not announced counts as a conversation."""
TOO_MANY: Final = "The widget has as many conversations as it may have at the same time."


@dataclass(frozen=True, slots=True)
class WidgetUsage:
    """Conversations that went on in the last 24 hours, from the beginning of the first, those among them that still do,
    and their cost in US dollars, which is an estimate for calls in progress. The whole cost of a conversation counts,
    also of one that began before.
    """

    sessions: int
    open_sessions: int
    spent: Decimal


async def count_session(limiter: RateLimiter, widget: Widget, address: str) -> None:
    """Count a conversation that a visitor of an address is about to begin. Raises `RateLimited`."""
    own, all_together = widget.max_sessions_per_minute_per_address, widget.max_sessions_per_minute
    checked = await limiter.check_address(f"widget:{widget.id}", address, Limit(own / 60, own))
    if checked.allowed:
        limit = Limit(all_together / 60, all_together)
        checked = await limiter.check("widget-sessions", f"widget:{widget.id}", limit)
    if not checked.allowed:
        raise RateLimited(headers={"Retry-After": str(max(1, round(checked.reset_seconds)))})


async def measure_usage(session: ReadSession, widget: Widget) -> WidgetUsage:
    """Measure the widget's conversations that went on in the last 24 hours. The estimate has at least each minute that
    a call in progress has begun.
    """
    found = await read_counts_of_widget(session, widget.id, announced_within=UNANNOUNCED)
    if isinstance(session, WriteSession):
        await merge_if_many(session, found.changes)
    prices = (await get_policy(session, widget.organization_id)).prices
    minutes = math.floor(found.talked) + found.talking
    estimate = estimate_call_cost(prices, minutes=minutes) if minutes else Decimal(0)
    return WidgetUsage(found.conversations, found.lasting, found.spent + estimate)


async def require_spend(session: ReadSession, widget: Widget) -> None:
    """Raise `SpendLimitReached` if the widget's conversations have cost as much as they may."""
    if (await measure_usage(session, widget)).spent >= widget.max_spend_per_day:
        raise SpendLimitReached


async def require_place(session: WriteSession, widget: Widget) -> None:
    """Raise `RateLimited` or `SpendLimitReached` if the widget may have no other conversation now. The answer stays
    true until this transaction ends.
    """
    await lock_name(session, f"sessions of widget {widget.id}")
    usage = await measure_usage(session, widget)
    if usage.open_sessions >= widget.max_concurrent_sessions:
        raise RateLimited(TOO_MANY, headers={"Retry-After": "60"})
    if usage.spent >= widget.max_spend_per_day:
        raise SpendLimitReached


async def add_session(session: WriteSession, widget: Widget, *, session_id: UUID | None = None) -> WidgetSession:
    """Add a conversation of the widget. Raises as `require_place`."""
    await require_place(session, widget)
    held = WidgetSession(id=session_id or new_id(), organization_id=session.organization_id, widget_id=widget.id)
    session.add(held)
    return held
