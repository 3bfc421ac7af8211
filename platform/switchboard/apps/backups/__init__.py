"""Archives: of an installation, back into an empty one, and of one organization, into another installation."""
