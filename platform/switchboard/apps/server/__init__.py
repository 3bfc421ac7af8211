"""The `serve` process: the ASGI application and its health endpoints."""
