"""The pages of agents: setting them up, their versions, trying them, simulations."""
