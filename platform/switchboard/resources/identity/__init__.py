"""Organizations, their API keys, and the people and applications that act for them."""
