"""Columns and values that every table shares."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import MetaData
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel
from uuid_utils.compat import uuid7

SQLModel.metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def new_id() -> UUID:
    """A UUIDv7: sorts by the time it was made, which keeps indexes and lists in order."""
    return uuid7()


def now() -> datetime:
    """The time, in UTC, to the millisecond that the API shows."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def json_column(empty: Callable[[], object] | None = dict) -> Any:
    """A JSONB column that starts as `empty()`, or as SQL's NULL. Assign a new value to change it: changes inside are not seen."""
    kind = JSONB(none_as_null=True)
    return (
        Field(default=None, sa_type=kind, nullable=True)
        if empty is None
        else Field(default_factory=empty, sa_type=kind, nullable=False)
    )


class TenantTable(SQLModel):
    """What each table of an organization's own rows starts with. Row-level security is forced on it by its migration."""

    id: UUID = Field(default_factory=new_id, primary_key=True)
    organization_id: UUID = Field(foreign_key="organization.id", ondelete="CASCADE")
    created_at: datetime = Field(default_factory=now)
