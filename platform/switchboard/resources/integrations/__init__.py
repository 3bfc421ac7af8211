"""The organization's integration: a partner's API key, and a webhook that receives every event."""
