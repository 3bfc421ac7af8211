"""Organizations, their API keys, and the users and applications that act for them."""
