"""The database schema and its migrations."""

from switchboard.migrations.upgrade import MigrationError, list_revisions, upgrade

__all__ = ["MigrationError", "list_revisions", "upgrade"]
