"""The database's schema, one step after the other."""

from switchboard.migrations.upgrade import MigrationError, upgrade

__all__ = ["MigrationError", "upgrade"]
