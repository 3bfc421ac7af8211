"""Text messages: sent and received, grouped in conversations, answered by agents."""
