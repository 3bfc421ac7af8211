"""Endpointing: the decision that the caller has finished a turn."""
