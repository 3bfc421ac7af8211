"""Statements about widgets, and about the conversations of their visitors."""

from uuid import UUID

from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, SystemSession
from switchboard.resources.calls.models import TranscriptLine
from switchboard.resources.widgets.models import Widget


def select_widgets(session: ReadSession, *, agent_id: UUID | None = None) -> SelectOfScalar[Widget]:
    """Select the organization's widgets, or those of an agent."""
    rows = session.select(Widget)
    return rows if agent_id is None else rows.where(col(Widget.agent_id) == agent_id)


async def find_public_widget(session: SystemSession, public_key: str) -> Widget | None:
    """Return the widget of any organization with a public key; None if there is none, or if it is turned off."""
    rows = select(Widget).where(col(Widget.public_key) == public_key, col(Widget.enabled))
    return (await session.exec(rows)).one_or_none()


async def count_transcript_lines(session: ReadSession, call_id: UUID) -> int:
    return await session.count(session.select(TranscriptLine).where(col(TranscriptLine.call_id) == call_id))
