"""The organization's integration: a partner's key, and a webhook that is told of every event."""
