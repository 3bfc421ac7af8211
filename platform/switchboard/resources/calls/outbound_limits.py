"""Calls and minutes of the last hour, for the organization's limits."""

from datetime import timedelta

from sqlalchemy import func, or_
from sqlmodel import col, select

from switchboard.foundation.database import TenantSession, now
from switchboard.plugin_sdk import CLIENT_PREFIX
from switchboard.resources.calls.models import Call
from switchboard.resources.destinations.limits import HOUR, pause_at_limit

LONGEST_CALL = timedelta(hours=4)


async def pause_at_call_limits(session: TenantSession) -> None:
    """Pause outbound work if the organization has reached its calls or minutes per hour.

    Outbound calls count, and those that were forwarded or transferred to a phone number, those in progress too.
    """
    moment = now()
    since = moment - HOUR
    outbound = (
        session.owns(Call),
        or_(col(Call.direction) == "outbound", col(Call.transferred_to).not_like(f"{CLIENT_PREFIX}%")),
    )
    begun = select(func.count()).select_from(Call).where(*outbound, col(Call.created_at) > since)
    await pause_at_limit(session, "calls_per_hour", begun)
    end = func.coalesce(col(Call.ended_at), moment)
    seconds = func.extract("epoch", end - func.greatest(col(Call.started_at), since))
    talked = select(func.sum(seconds) / 60).where(
        *outbound, col(Call.created_at) > since - LONGEST_CALL, col(Call.started_at).is_not(None), end > since
    )
    await pause_at_limit(session, "minutes_per_hour", talked)
