"""Fixtures of the calls with SIP peers."""

from tests.carriers.sip.line import sip_lines

__all__ = ["sip_lines"]
