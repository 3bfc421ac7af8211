"""Calls: placed and answered, held by the engine, ended, written down."""
