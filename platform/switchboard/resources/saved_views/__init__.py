"""Saved views: filters of a list under a name, shared within the organization."""
