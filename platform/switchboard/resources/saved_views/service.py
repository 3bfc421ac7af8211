"""Rules of saved views."""

from uuid import UUID

from switchboard.foundation.database import WriteSession
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row
from switchboard.resources.saved_views.models import SavedView
from switchboard.resources.saved_views.queries import list_views

MAX_VIEWS = 50


async def save_view(session: WriteSession, page: str, name: str, query: str) -> None:
    """Save a view. A view of the same name is replaced. Raises `InvalidState` for too many views."""
    views = await list_views(session, page)
    view = next((view for view in views if view.name == name), None)
    if view is None and len(views) >= MAX_VIEWS:
        raise InvalidState(f"The list has {MAX_VIEWS} saved views. Delete one first.")
    view = view or SavedView(organization_id=session.organization_id, page=page, name=name, query=query)
    view.query = query
    session.add(view)


async def delete_view(session: WriteSession, view_id: UUID) -> None:
    """Delete a view. Raises `NotFound`."""
    await session.delete(await get_row(session, SavedView, view_id))
