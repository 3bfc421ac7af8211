"""Statements about saved views."""

from sqlmodel import col

from switchboard.foundation.database import ReadSession
from switchboard.resources.saved_views.models import SavedView


async def list_views(session: ReadSession, page: str) -> list[SavedView]:
    """List the views of a page, by name."""
    rows = session.select(SavedView).where(col(SavedView.page) == page).order_by(col(SavedView.name))
    return list((await session.exec(rows)).all())
