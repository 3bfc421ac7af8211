"""Table of privacy requests."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index
from sqlmodel import Field

from switchboard.foundation.database import TenantTable, encryption_label, index_due, json_column

NUMBER_LABEL = "privacy_request|sealed_number|{id}|{organization_id}"


class PrivacyRequest(TenantTable, table=True):
    """A request of a person for a copy of their data, or for its erasure, and at the same time its queue entry.

    `sealed_number` is the phone number, encrypted by the keyring; None once it is erased. `actor` is the audit log's
    name of the requester. `report` is the `PrivacyReport`. `due_at` is when a worker may claim the request: the end of
    the lease while one holds it, and after an export, when its file expires.
    """

    __tablename__ = "privacy_request"
    __table_args__ = (
        Index(None, "organization_id", "created_at", "id"),
        index_due("ix_privacy_request_due", "due_at"),
        CheckConstraint("kind in ('export', 'erase')", name="kind"),
        CheckConstraint("status in ('queued', 'running', 'completed', 'failed')", name="status"),
    )

    kind: str
    status: str = "queued"
    sealed_number: str | None = Field(default=None, sa_column_kwargs=encryption_label(NUMBER_LABEL))
    actor: str
    report: dict[str, Any] = json_column()
    error_message: str | None = None
    due_at: datetime | None = None
    completed_at: datetime | None = None
    file_expires_at: datetime | None = None
