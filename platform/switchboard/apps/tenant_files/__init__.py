"""Tenant files: the operator's organization files, read, validated, compared, and applied."""
