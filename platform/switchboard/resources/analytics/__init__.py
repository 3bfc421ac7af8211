"""How an organization's calls go."""
