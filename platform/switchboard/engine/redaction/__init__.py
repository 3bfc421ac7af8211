"""Redaction of private data in conversations, before a text is kept or sent."""
