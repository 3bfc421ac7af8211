"""Webhook endpoints: who is told of what, and what became of each telling."""
