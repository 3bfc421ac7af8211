"""The database schema and its migrations."""

from switchboard.migrations.gate import wait_for_schema
from switchboard.migrations.upgrade import MigrationError, upgrade

__all__ = ["MigrationError", "upgrade", "wait_for_schema"]
