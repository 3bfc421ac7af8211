"""Carrier callbacks: webhooks from carriers, passed on to calls and text messages."""
