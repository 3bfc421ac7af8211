"""Organizations that are being moved to another installation (docs/decisions/0099-moving-an-organization.md).

While `organization.moving_since` is set, nothing new begins: the API refuses requests that write, and looks for due
work pass the organization over. Once `frozen_at` is set too, PostgreSQL refuses each transaction that may write for it,
in the message that begins it. As any statement costs a small transaction some percent, a process asks once in
`CHECK_SECONDS` for each organization, so that after `LATEST_SECONDS` no transaction begins that has not seen the mark.
"""

from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Uuid, column, select, table
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Mapped

FROZEN_STATE: Final = "SW001"
"""SQLSTATE of `require_writable_organization`, a procedure of the schema."""
REQUIRE_WRITABLE: Final = "call require_writable_organization();"
CHECK_SECONDS: Final = 5.0
"""Time for which a process takes an organization for writable once PostgreSQL has said so."""
LATEST_SECONDS: Final = CHECK_SECONDS + 1.0
"""Time after that reply by which each transaction has begun that relies on it."""
_ORGANIZATION: Final = table("organization", column("id", Uuid()), column("moving_since"))
MOVING: Final[Select[UUID]] = select(_ORGANIZATION.c.id).where(_ORGANIZATION.c.moving_since.is_not(None))
NOT_MOVING: Final = "not in (select id from organization where moving_since is not null)"
"""Condition of a column with the organization, in statements that are text."""


class OrganizationFrozen(SQLAlchemyError):
    """Nothing may be written for an organization that is being moved to another installation."""

    def __init__(self) -> None:
        super().__init__("the organization is being moved to another installation, and takes no changes")


def is_not_moving(owner: ColumnElement[UUID] | Mapped[UUID]) -> ColumnElement[bool]:
    """Return the condition that the organization in a column is not being moved."""
    return owner.not_in(MOVING)
