"""Drafts of agents: saved, tested by simulations, and published."""
