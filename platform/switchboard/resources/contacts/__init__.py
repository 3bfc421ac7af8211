"""Contacts: the people that an organization talks to."""
