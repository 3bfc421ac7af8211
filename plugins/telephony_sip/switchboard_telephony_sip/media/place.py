"""Place of a process's media: its address, its ports, and its timer."""

import ipaddress
from collections.abc import Sequence

from switchboard_telephony_sip.media.pacer import MediaPacer
from switchboard_telephony_sip.media.ports import DEFAULT_PORTS, PortPool


class MediaPlace:
    """One for all calls of a process.

    `bind_host`: IPv4 or IPv6 address to listen on. `advertised_host`: address in session descriptions, where it
    differs, as behind a NAT or with `0.0.0.0`. `ports`: range of UDP ports; a call takes two.
    """

    def __init__(
        self,
        bind_host: str,
        *,
        advertised_host: str | None = None,
        ports: Sequence[int] = DEFAULT_PORTS,
        pacer: MediaPacer | None = None,
    ) -> None:
        self.advertised_host = str(ipaddress.ip_address(advertised_host or bind_host))
        if ipaddress.ip_address(self.advertised_host).is_unspecified:
            raise ValueError(f"media on {bind_host} needs the address that the far end sends to: advertised_host")
        self.ports = PortPool(bind_host, ports)
        self.pacer = pacer or MediaPacer()
