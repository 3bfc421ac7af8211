"""Infrastructure that every resource builds on: settings, database, jobs, HTTP, events, outbound requests,
observability.
"""
