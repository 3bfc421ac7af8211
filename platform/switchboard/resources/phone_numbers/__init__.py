"""Phone numbers: purchased from a carrier, answered by agents, released."""
