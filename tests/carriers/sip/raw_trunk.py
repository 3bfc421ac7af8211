"""A trunk that sends what a test tells it to, message by message."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import cast

from aiosipua.message import SipRequest, SipResponse
from switchboard_telephony_sip.signaling.messages import build_response, parse_sip_message

from tests.fixtures.eventually import eventually

SDP = (
    "v=0\r\no=- 2 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
    "m=audio 9 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"
)


class RawTrunk(asyncio.DatagramProtocol):
    """The trunk. `on_request` reacts to each request at once; `requests` and `responses` are all that came."""

    def __init__(self) -> None:
        self.requests: list[SipRequest] = []
        self.responses: list[SipResponse] = []
        self.on_request: Callable[[SipRequest], None] = lambda _: None
        self._transport: asyncio.DatagramTransport | None = None
        self._peer = ("127.0.0.1", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    @property
    def port(self) -> int:
        assert self._transport is not None
        return int(self._transport.get_extra_info("sockname")[1])

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self._peer = address
        message = parse_sip_message(data)
        if isinstance(message, SipResponse):
            self.responses.append(message)
            return
        self.requests.append(message)
        self.on_request(message)

    def respond(self, request: SipRequest, status: int, sdp: str = "", headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send a response, with a session description if there is one."""
        kind = [("Content-Type", "application/sdp")] if sdp else []
        contact = ("Contact", f"<sip:127.0.0.1:{self.port}>")
        response = build_response(
            request, status, tag="far" if status > 100 else "", headers=[contact, *kind, *headers]
        )
        response.text = sdp
        self.send(bytes(response), self._peer)

    def send(self, data: bytes, address: tuple[str, int]) -> None:
        assert self._transport is not None
        self._transport.sendto(data, address)

    async def wait_for(self, method: str, *, count: int = 1) -> SipRequest:
        """Wait for so many requests with a method, repetitions included, and return the last of them."""

        async def look() -> list[SipRequest]:
            return [request for request in self.requests if request.method == method]

        return (await eventually(look, lambda found: len(found) >= count))[count - 1]

    async def wait_for_response(self, method: str, status: int) -> SipResponse:
        """Wait for a response to a request with a method."""

        async def look() -> list[SipResponse]:
            wanted = f" {method}"
            return [
                response
                for response in self.responses
                if response.status_code == status and (response.headers.get_first("cseq") or "").endswith(wanted)
            ]

        return (await eventually(look, bool))[0]

    def list_methods(self) -> list[str]:
        """Return the methods of the requests without their repetitions."""
        return list(dict.fromkeys(request.method for request in self.requests))


@asynccontextmanager
async def open_raw_trunk() -> AsyncIterator[RawTrunk]:
    loop = asyncio.get_running_loop()
    transport, trunk = await loop.create_datagram_endpoint(RawTrunk, local_addr=("127.0.0.1", 0))
    try:
        yield trunk
    finally:
        transport.close()
