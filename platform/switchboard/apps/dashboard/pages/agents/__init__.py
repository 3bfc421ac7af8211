"""The pages of agents: settings, versions, tests, and simulations."""
