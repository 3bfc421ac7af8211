"""Calls and text messages of one phone number in one list."""
