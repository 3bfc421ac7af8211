"""Disclosure of AI and recording: settings, presets of jurisdictions, and the place of a phone number."""
