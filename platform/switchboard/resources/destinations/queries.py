"""Statements about the rules for outbound calls and text messages."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.resources.destinations.models import OutboundPause
from switchboard.resources.identity.models import Organization

_RULES: Final = (
    select(Organization.narrowed_destinations, Organization.suspended_at, Organization.moving_since, OutboundPause)
    .outerjoin(OutboundPause, col(OutboundPause.organization_id) == col(Organization.id))
    .where(col(Organization.id) == bindparam("organization_id"))
    .execution_options(populate_existing=True)  # another transaction may have written a pause
)


async def get_restrictions(
    session: ReadSession,
) -> tuple[Mapping[str, Any] | None, datetime | None, datetime | None, OutboundPause | None]:
    """Return what the organization's owners close, the times of its suspension and of its move, and its last pause."""
    return (await session.exec(_RULES, params={"organization_id": session.organization_id})).one()


async def replace_pause(session: WriteSession, pause: OutboundPause, *, last: OutboundPause | None) -> bool:
    """Save a pause in place of the last one; return whether it was saved.

    Of several transactions that reach the limit at once, one writes the pause.
    """
    fresh = pause.model_dump()
    unchanged = col(OutboundPause.paused_at) == (last.paused_at if last else None)
    written = await session.exec(
        insert(OutboundPause)
        .values(fresh)
        .on_conflict_do_update(index_elements=["organization_id"], set_=fresh, where=unchanged)
    )
    return bool(written.rowcount)
