"""What an organization has used, month by month."""
