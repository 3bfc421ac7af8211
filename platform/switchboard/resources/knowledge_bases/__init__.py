"""Knowledge bases: an organization's documents, searched by meaning and by words."""
