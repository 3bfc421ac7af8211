"""Processes and their user interfaces: the HTTP server, the worker, the dashboard, and the command line."""
