"""Pages of the operator console, for superadmins."""
