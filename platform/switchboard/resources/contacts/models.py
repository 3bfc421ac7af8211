"""Tables of contacts."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, now, refer_to
from switchboard.foundation.web.row_counts import RowCounter


class Contact(TenantTable, table=True):
    """A person with a phone number, with the API's Contact fields."""

    __tablename__ = "contact"
    __row_counter__ = RowCounter()
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        UniqueConstraint("organization_id", "phone_number"),
        Index(None, "organization_id", "created_at", "id"),
    )

    phone_number: str
    name: str | None = None
    email: str | None = None
    company: str | None = None
    notes: str | None = None
    tags: str | None = None
    address: str | None = None
    role: str | None = None
    is_favorite: bool = False
    updated_at: datetime = Field(default_factory=now)


class ContactSearch(TenantTable, table=True):
    """The words of a contact for search, with the words of its notes apart; `id` and `created_at` are the contact's.

    The table has an index of all runs of three letters, and a policy that looks into it for the setting
    `app.contact_search`: a row that cannot match is not visible. `search.py` sets it for one statement; without it
    nothing is hidden (docs/decisions/0012-contact-search.md).
    """

    __tablename__ = "contact_search"
    __table_args__ = (refer_to("contact", "id"),)

    content: str
    notes: str
