"""Which providers an organization uses: their settings, their instances, and what happens when one fails."""
