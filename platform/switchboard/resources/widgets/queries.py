"""Statements about widgets, and of the conversations of their visitors."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy import func
from sqlmodel import col, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.database import ReadSession, SystemSession, now
from switchboard.resources.calls.models import CHAT, Call, TranscriptLine
from switchboard.resources.widgets.models import Widget, WidgetSession

DAY: Final = timedelta(days=1)
OLDEST: Final = 2 * DAY
"""Age beyond that of every conversation of the last 24 hours: chats and calls last four hours at most."""
UNANNOUNCED: Final = timedelta(minutes=1)
"""Time for which a voice call that its carrier has not announced counts as a conversation."""


def select_widgets(session: ReadSession, *, agent_id: UUID | None = None) -> SelectOfScalar[Widget]:
    """Select the organization's widgets, or those of an agent."""
    rows = session.select(Widget)
    return rows if agent_id is None else rows.where(col(Widget.agent_id) == agent_id)


async def find_public_widget(session: SystemSession, public_key: str) -> Widget | None:
    """Return the widget of any organization with a public key; None if there is none, or if it is turned off."""
    rows = select(Widget).where(col(Widget.public_key) == public_key, col(Widget.enabled))
    return (await session.exec(rows)).one_or_none()


async def measure_sessions(
    session: ReadSession, widget_id: UUID
) -> tuple[tuple[int, int, Decimal], Sequence[datetime | None]]:
    """Return the number of a widget's conversations that went on in the last 24 hours, of those that still do, and
    their cost so far; and when its calls that still go on have started.
    """
    of_call = (col(Call.organization_id) == WidgetSession.organization_id) & (col(Call.id) == WidgetSession.call_id)
    goes_on = col(Call.id).is_not(None) & col(Call.ended_at).is_(None)
    is_open = or_(goes_on, col(Call.id).is_(None) & (col(WidgetSession.created_at) > now() - UNANNOUNCED))
    ours = (
        session.owns(WidgetSession),
        col(WidgetSession.widget_id) == widget_id,
        col(WidgetSession.created_at) > now() - OLDEST,  # by the index
        or_(goes_on, func.coalesce(col(Call.ended_at), col(WidgetSession.created_at)) > now() - DAY),
    )
    totals = select(
        func.count(), func.count().filter(is_open), func.coalesce(func.sum(col(Call.cost_total)), 0)
    ).select_from(WidgetSession)
    sessions, open_sessions, spent = (await session.exec(totals.join(Call, of_call, isouter=True).where(*ours))).one()
    talking = select(Call.started_at).join(WidgetSession, of_call).where(*ours, session.owns(Call))
    running = (await session.exec(talking.where(goes_on, col(Call.carrier) != CHAT))).all()
    return (sessions, open_sessions, Decimal(spent)), running


async def count_transcript_lines(session: ReadSession, call_id: UUID) -> int:
    """Count the lines of a call's transcript."""
    return await session.count(session.select(TranscriptLine).where(col(TranscriptLine.call_id) == call_id))
