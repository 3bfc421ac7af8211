"""Agents: the configuration that a conversation runs on."""
