"""Backup of an installation into one archive, and back into an empty one."""
