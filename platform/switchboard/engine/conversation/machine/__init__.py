"""Machines that answer outbound calls: voicemail, and assistants that screen calls."""
