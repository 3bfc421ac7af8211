"""The database schema and its migrations."""

from switchboard.migrations.upgrade import MigrationError, upgrade

__all__ = ["MigrationError", "upgrade"]
