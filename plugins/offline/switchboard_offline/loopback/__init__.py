"""The loopback carrier: a carrier in the machine, with people at the other end."""

from switchboard_offline.loopback.provider import LoopbackTelephony

__all__ = ["LoopbackTelephony"]
