"""The loopback carrier. The plugin's README describes its protocol, phone numbers, and simulated people."""

from switchboard_offline.loopback.provider import LoopbackSettings, LoopbackTelephony

__all__ = ["LoopbackSettings", "LoopbackTelephony"]
