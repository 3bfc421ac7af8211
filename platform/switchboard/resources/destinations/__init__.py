"""Phone numbers that an organization may call and text, and the limits of its outbound work."""
