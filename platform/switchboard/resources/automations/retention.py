"""Automation runs that retention deletes. They hold the data of their event."""

from switchboard.foundation.database import Database
from switchboard.resources.automations.models import AutomationRun
from switchboard.resources.identity.retention import ExpiringRows, RowDeleter

ENDED_RUNS = ExpiringRows(AutomationRun, moment="completed_at")


def build_run_deleter(database: Database) -> RowDeleter:
    """Build the deleter of runs that have ended."""
    return RowDeleter(database, "events", ENDED_RUNS)
