"""Contacts: whom an organization talks to."""
