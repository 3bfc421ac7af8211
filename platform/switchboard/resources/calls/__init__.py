"""Calls: placing, answering, running, ending, and recording them."""
