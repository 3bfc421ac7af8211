"""Event deliveries: claimed in batches, sent without a database connection, and recorded under a fencing token."""
