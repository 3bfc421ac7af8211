"""Usage of an organization by month."""
