"""Calls and minutes of the last hour, for the organization's limits.

Outbound calls count, and those that were forwarded or transferred to a phone number, those in progress too.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import DateTime, bindparam, func, or_
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import TenantSession, now
from switchboard.plugin_sdk import CLIENT_PREFIX
from switchboard.resources.calls.models import Call
from switchboard.resources.destinations.service import HOUR, pause_at_limit

LONGEST_CALL = timedelta(hours=4)
_SINCE, _MOMENT, _FIRST = (bindparam(name, type_=DateTime(timezone=True)) for name in ("since", "moment", "first"))
_OUTBOUND = (
    col(Call.organization_id) == bindparam("organization_id"),
    or_(col(Call.direction) == "outbound", col(Call.transferred_to).not_like(f"{CLIENT_PREFIX}%")),
)
_END = func.coalesce(col(Call.ended_at), _MOMENT)
_SECONDS = func.extract("epoch", _END - func.greatest(col(Call.started_at), _SINCE))
CALLS_BEGUN: Final[SelectOfScalar[int]] = (
    select(func.count()).select_from(Call).where(*_OUTBOUND, col(Call.created_at) > _SINCE)
)
MINUTES_TALKED: Final[SelectOfScalar[Any]] = select(func.sum(_SECONDS) / 60).where(
    *_OUTBOUND, col(Call.created_at) > _FIRST, col(Call.started_at).is_not(None), _END > _SINCE
)


def build_hour() -> dict[str, datetime]:
    """Return the parameters of `CALLS_BEGUN` and `MINUTES_TALKED` for the hour before now, but the organization's."""
    moment = now()
    return {"moment": moment, "since": moment - HOUR, "first": moment - HOUR - LONGEST_CALL}


async def pause_at_call_limits(session: TenantSession) -> None:
    """Pause outbound work if the organization has reached its calls or minutes per hour."""
    values = {"organization_id": session.organization_id, **build_hour()}
    await pause_at_limit(session, "calls_per_hour", CALLS_BEGUN.params(values))
    await pause_at_limit(session, "minutes_per_hour", MINUTES_TALKED.params(values))
