"""What happened, written down in the transaction of the fact itself."""
