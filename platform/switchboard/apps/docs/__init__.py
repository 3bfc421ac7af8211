"""The documentation that a server has: the API reference with samples, the guides, search, and the OpenAPI document."""
