"""Simulations: a persona plays the caller, and assertions say whether the agent did well."""
