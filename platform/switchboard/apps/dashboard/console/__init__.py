"""Queries of the operator console."""
