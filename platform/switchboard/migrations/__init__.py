"""The database schema and its migrations."""

from switchboard.migrations.gate import wait_for_schema
from switchboard.migrations.schema import load_scripts
from switchboard.migrations.upgrade import MigrationError, upgrade

__all__ = ["MigrationError", "load_scripts", "upgrade", "wait_for_schema"]
