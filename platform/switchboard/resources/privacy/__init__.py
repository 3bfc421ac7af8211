"""Data subject requests: export and erase what an organization has about one phone number."""
