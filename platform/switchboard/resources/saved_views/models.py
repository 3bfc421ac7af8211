"""Table of saved views."""

from sqlalchemy import UniqueConstraint

from switchboard.foundation.database import TenantTable


class SavedView(TenantTable, table=True):
    """A list's filters under a name: `page` is the list, such as `calls`, and `query` the URL-encoded filters."""

    __tablename__ = "saved_view"
    __table_args__ = (UniqueConstraint("organization_id", "page", "name"),)

    page: str
    name: str
    query: str
