"""Contacts."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, now


class Contact(TenantTable, table=True):
    """Somebody with a phone number. Fields as in the specification's Contact."""

    __tablename__ = "contact"
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
    """A contact's words as the search compares them, those of its notes apart; `id` and `created_at` are the contact's.

    The migration gives the table an index of all runs of three letters and a policy that looks into it for the setting
    `app.contact_search`: a row that cannot match the setting is not visible. `search.py` sets it for one statement; empty, it hides nothing.
    """

    __tablename__ = "contact_search"
    __table_args__ = (
        ForeignKeyConstraint(["organization_id", "id"], ["contact.organization_id", "contact.id"], ondelete="CASCADE"),
    )

    content: str
    notes: str
