"""Agents: who holds the calls."""
