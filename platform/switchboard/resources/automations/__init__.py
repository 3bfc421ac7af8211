"""Automations: when an event happens, and its conditions hold, actions are taken one after the other."""
