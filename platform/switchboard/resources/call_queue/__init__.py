"""Callers who wait for a person, callbacks, and the users who can answer."""
