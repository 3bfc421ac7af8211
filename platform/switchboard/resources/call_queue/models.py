"""Tables of the queue."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, now
from switchboard.foundation.encryption import encrypted_content


@encrypted_content("reason")
class CallQueueEntry(TenantTable, table=True):
    """A caller who waits for a person, or wants to be called back. `number` is empty if the caller's is withheld.

    `waiting` becomes `answered` by a takeover, `expired` after the longest wait, `abandoned` if the caller hangs up, or
    `callback`. A callback is `called_back` by a call with an entry of its own, which is `calling` until that call is
    answered; `callback_of` is the callback's entry, which is open again if it is not. `handled_by` is a user's name.
    """

    __tablename__ = "call_queue_entry"
    __table_args__ = (
        ForeignKeyConstraint(["organization_id", "call_id"], ["call.organization_id", "call.id"], ondelete="CASCADE"),
        Index(
            "ix_call_queue_entry_open",
            "organization_id",
            "status",
            "created_at",
            postgresql_where=text("status in ('waiting', 'calling', 'callback')"),
        ),
        Index(None, "organization_id", "call_id"),
        CheckConstraint(
            "status in ('waiting', 'answered', 'expired', 'abandoned', 'callback', 'called_back', 'calling')",
            name="status",
        ),
    )

    call_id: UUID
    number: str
    reason: str
    status: str = "waiting"
    handled_by: str | None = None
    ended_at: datetime | None = None
    callback_of: UUID | None = None


class QueueAttendant(TenantTable, table=True):
    """A user who can answer waiting callers: when their browser followed the queue last."""

    __tablename__ = "queue_attendant"
    __table_args__ = (UniqueConstraint("organization_id", "user_id"),)

    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    seen_at: datetime = Field(default_factory=now)
