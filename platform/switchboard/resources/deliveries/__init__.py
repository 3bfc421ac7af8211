"""Delivering events: rows claimed in batches, sent with no database connection held, results written back under a fencing token."""
