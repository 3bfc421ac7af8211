"""Calling from a browser or a phone app: tokens, and the numbers that one can call from."""
