"""Phone numbers: bought from a carrier, answered by agents, given back."""
