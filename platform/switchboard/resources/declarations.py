"""Declarations that tables and request bodies of resources have in common."""

from pydantic import ConfigDict, JsonValue
from sqlalchemy import ForeignKeyConstraint


def refer_to(table: str, column: str) -> ForeignKeyConstraint:
    """Refer to a row of the same organization, whose id is in a column, and with which the referring row is deleted."""
    keys = [f"{table}.organization_id", f"{table}.id"]
    return ForeignKeyConstraint(["organization_id", column], keys, ondelete="CASCADE")


def show_example(**fields: JsonValue) -> ConfigDict:
    """Let the documentation of the API show these fields as the example of a request body."""
    return ConfigDict(json_schema_extra={"examples": [fields]})
