"""Notices that open a call, and the caller's answer to them, without a model."""
