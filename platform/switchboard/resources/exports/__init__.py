"""Exports: whole lists as CSV or JSON Lines, streamed."""
