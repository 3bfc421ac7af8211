"""The do-not-call list: numbers that an organization neither calls nor texts."""
