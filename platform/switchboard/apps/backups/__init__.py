"""Backup of an installation into one archive, and back into an empty one."""

from switchboard.apps.backups.archive import ArchiveError, read_header, verify_archive
from switchboard.apps.backups.backup import BackupSummary, write_backup
from switchboard.apps.backups.recordings import BackupRecordings
from switchboard.apps.backups.restore import RestoreError, check_target, load_backup
from switchboard.apps.backups.snapshot import SnapshotError

__all__ = [
    "ArchiveError",
    "BackupRecordings",
    "BackupSummary",
    "RestoreError",
    "SnapshotError",
    "check_target",
    "load_backup",
    "read_header",
    "verify_archive",
    "write_backup",
]
