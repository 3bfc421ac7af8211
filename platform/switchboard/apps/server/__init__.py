"""The `serve` process: the ASGI application, its health endpoints, and the API reference page."""
