"""The operator's organization files: read, checked, compared, applied."""
