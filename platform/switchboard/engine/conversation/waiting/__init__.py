"""The wait of a caller for a person."""
