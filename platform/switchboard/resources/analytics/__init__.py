"""Analytics: aggregate figures of an organization's calls."""
