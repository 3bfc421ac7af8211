"""Live calls: monitoring over Redis and WebSocket, and the holder process's heartbeat."""
