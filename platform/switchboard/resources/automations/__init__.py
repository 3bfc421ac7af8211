"""Automations: an event whose conditions hold runs a list of actions in order."""
