"""Texts: sent and received, kept as conversations, answered by agents."""
