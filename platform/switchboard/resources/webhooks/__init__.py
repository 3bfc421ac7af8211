"""Webhook endpoints, subscriptions, and delivery history."""
