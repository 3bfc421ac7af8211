"""Knowledge bases: an organization's documents, found again by meaning and by words."""
