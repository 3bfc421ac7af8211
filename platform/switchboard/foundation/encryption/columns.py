"""The encrypted columns: those that their models mark with `encryption_label`."""

from dataclasses import dataclass
from string import Formatter
from typing import Any

from sqlalchemy import Column, ColumnElement, LargeBinary, Text, func
from sqlmodel import SQLModel

from switchboard.foundation.database import ENCRYPTION_LABEL

FINGERPRINT_END = len("v1.01234567")


@dataclass(frozen=True, slots=True)
class EncryptedColumn:
    """A column with ciphertexts. `label` is the template of the place that a value is bound to."""

    column: Column[Any]
    label: str

    @property
    def name(self) -> str:
        """The name with its table, `event_target.secret`."""
        return f"{self.column.table.name}.{self.column.name}"

    @property
    def is_tenants(self) -> bool:
        """True for a column of organizations' rows, False for one of users."""
        return "organization_id" in self.column.table.c

    @property
    def label_fields(self) -> list[Column[Any]]:
        """The columns that the label names."""
        return [self.column.table.c[field] for _, field, _, _ in Formatter().parse(self.label) if field]

    @property
    def fingerprint(self) -> ColumnElement[str]:
        """The fingerprint of a value's key, as an SQL expression that reads only the beginning of the value."""
        start = func.substr(self.column, 1, FINGERPRINT_END)
        return func.split_part(func.convert_from(start, "UTF8") if self.is_binary else start, ".", 2, type_=Text)

    @property
    def is_binary(self) -> bool:
        """True for a column of bytes, False for one of text."""
        return isinstance(self.column.type, LargeBinary)


def list_encrypted_columns() -> list[EncryptedColumn]:
    """Return every encrypted column of the imported models."""
    return [
        EncryptedColumn(column, column.info[ENCRYPTION_LABEL])
        for table in SQLModel.metadata.sorted_tables
        for column in table.columns
        if ENCRYPTION_LABEL in column.info
    ]
