"""Campaigns: lists of people whom an agent calls, so many at a time."""
