"""Columns and default values that every table shares."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel
from sqlalchemy import Dialect, ForeignKeyConstraint, Index, MetaData, Numeric, TypeDecorator, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeEngine
from sqlmodel import Field, SQLModel
from uuid_utils.compat import uuid7

from switchboard.foundation.database.clock import now

ENCRYPTION_LABEL = "encryption_label"

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
    """Return a UUIDv7, which sorts by creation time and so keeps indexes and lists in order."""
    return uuid7()


BUCKETS: Final = 1024


def get_bucket(organization_id: UUID) -> int:
    """Return the bucket of background work to which an organization belongs: the last ten bits of its id, which are
    random (RFC 9562, section 5.7). The database's function `bucket` returns the same.
    """
    return int(organization_id) % BUCKETS


def index_due(name: str, column: str, condition: str | None = None, *, owner: str = "organization_id") -> Index:
    """Define the index by which rows that are due at the moment in `column` are found, those of one bucket together:
    of the rows that meet the condition, or of those that have a moment. The bucket is that of the id in `owner`.
    """
    condition = condition or f"{column} is not null"
    return Index(name, text(f"bucket({owner})"), column, postgresql_where=text(condition))


def refer_to(table: str, column: str) -> ForeignKeyConstraint:
    """Refer to a row of the same organization, whose id is in a column, and with which the referring row is deleted."""
    keys = [f"{table}.organization_id", f"{table}.id"]
    return ForeignKeyConstraint(["organization_id", column], keys, ondelete="CASCADE")


def json_column(empty: Callable[[], object] | None = dict) -> Any:
    """Define a JSONB column that defaults to `empty()`, or to SQL NULL. Assign a new value to change it: in-place
    changes are not detected.
    """
    kind = JSONB(none_as_null=True)
    if empty is None:
        return Field(default=None, sa_type=kind, nullable=True)
    # Pydantic inspects the factory's signature for each new row: 0.3 ms for `list`, 0.02 ms for a function.
    return Field(default_factory=lambda: empty(), sa_type=kind, nullable=False)  # noqa: PLW0108


class Money(TypeDecorator[Decimal]):
    """An amount in US dollars, exact to the sixth decimal. A `float` is refused, which has no exact amount."""

    impl = Numeric(14, 6)
    cache_ok = True

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Decimal | None:
        if isinstance(value, float):
            raise InvalidRequestError("an amount of money is a `Decimal`")
        return value


class Document(TypeDecorator[BaseModel]):
    """A JSONB column that is read as a pydantic model. Fields of a later version are ignored, so that versions run side
    by side.
    """

    impl = JSONB
    cache_ok = True

    def __init__(self, model: type[BaseModel]) -> None:
        super().__init__()
        self.model = model

    def coerce_compared_value(self, op: OperatorType | None, value: object) -> TypeEngine[Any]:
        """Return the type of `column["field"]` (SQLAlchemy, Custom Types, "TypeDecorator.coerce_compared_value")."""
        return self.impl_instance.coerce_compared_value(op, value)

    def process_bind_param(self, value: BaseModel | None, dialect: Dialect) -> object:
        return None if value is None else value.model_dump(mode="json")

    def process_result_value(self, value: object, dialect: Dialect) -> BaseModel | None:
        return None if value is None else self.model.model_validate(value, strict=False, extra="ignore")


def document_column(model: type[BaseModel]) -> Any:
    """Define a JSONB column that holds a pydantic model, by default `model()`. Assign a new model to change it."""
    return Field(default_factory=model, sa_type=Document(model), nullable=False)


def encryption_label(label: str) -> dict[str, Any]:
    """Mark a column as encrypted by the keyring: `Field(sa_column_kwargs=encryption_label(…))`.

    `label` is the template of the place that each value is bound to, with columns of the row in braces. `switchboard
    keys rotate` and the check for missing keys find the column by this mark.
    """
    return {"info": {ENCRYPTION_LABEL: label}}


class TenantTable(SQLModel):
    """Base of the tables that hold an organization's rows. Its migration forces row-level security on each."""

    id: UUID = Field(default_factory=new_id, primary_key=True)
    organization_id: UUID = Field(foreign_key="organization.id", ondelete="CASCADE")
    created_at: datetime = Field(default_factory=now)


class RecordTable(TenantTable):
    """Base of the tables whose rows are inserted often. No foreign key refers to the organization, whose one row would
    be locked with each of them (docs/decisions/0028-history-by-month.md).
    """

    organization_id: UUID


def partition_by_month(column: str) -> dict[str, Any]:
    """Partition a table by the month of the id in a column: the last of its `__table_args__`.

    A query of one row, or of the rows of one call, has a condition on this id, so that it reads one month.
    """
    return {"postgresql_partition_by": f"range ({column})"}
