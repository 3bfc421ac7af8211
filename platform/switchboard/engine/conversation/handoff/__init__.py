"""Handing a live call over to a supervisor: monitoring, whispering, and takeover."""
