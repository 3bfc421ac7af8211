"""Tables of the do-not-call list."""

from sqlalchemy import CheckConstraint, Index, UniqueConstraint

from switchboard.foundation.database import TenantTable
from switchboard.foundation.web.row_counts import RowCounter


class DoNotCallEntry(TenantTable, table=True):
    """A number that the organization must not call. `source` is the channel of the request: the API, a text message,
    or a call.
    """

    __tablename__ = "do_not_call_entry"
    __row_counter__ = RowCounter()
    __table_args__ = (
        UniqueConstraint("organization_id", "phone_number"),
        Index(None, "organization_id", "created_at", "id"),
        CheckConstraint("source in ('api', 'text', 'call')", name="source"),
    )

    phone_number: str
    source: str
    note: str = ""


class ErasedNumber(TenantTable, table=True):
    """A number of the list whose person was erased: its HMAC-SHA-256 under a key of the organization, and the entry's
    `source`. It is checked like an entry, and appears in no list.
    """

    __tablename__ = "erased_number"
    __table_args__ = (UniqueConstraint("organization_id", "digest"),)

    digest: bytes
    source: str
