"""The loopback carrier. Its wire, its numbers and its people are described in the plugin's README."""

from switchboard_offline.loopback.provider import LoopbackSettings, LoopbackTelephony

__all__ = ["LoopbackSettings", "LoopbackTelephony"]
