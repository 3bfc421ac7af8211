"""Events: published in the transaction of the fact, through an outbox."""
