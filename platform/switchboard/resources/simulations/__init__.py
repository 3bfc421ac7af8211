"""Simulations: a simulated caller talks to an agent, and assertions evaluate the conversation."""
