"""Switchboard: a self-hosted voice-agent platform."""
