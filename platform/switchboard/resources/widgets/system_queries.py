"""The query about widgets that crosses organizations: a public key does not name its organization."""

from sqlmodel import col, select

from switchboard.foundation.database import Database
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.widgets.models import Widget


async def get_public_widget(database: Database, public_key: str) -> Widget:
    """Return the widget with a public key. Raises `NotFound`, also for a widget that is turned off."""
    async with database.system() as session:
        rows = select(Widget).where(col(Widget.public_key) == public_key, col(Widget.enabled))
        widget = (await session.exec(rows)).one_or_none()
    if widget is None:
        raise NotFound("There is no such widget, or it is turned off.")
    return widget
