"""WebSocket of browsers and apps that call over a carrier without a client SDK:
`/browser-calls/<carrier>/<organization>`.

The carrier's plugin speaks the protocol and asks for a token. Any page may connect, as it may with a carrier's SDK.
"""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import BrowserPhone, CallbackUrls, Frame, ProviderError, TelephonyProvider
from switchboard.resources.browser_calls.service import PREFIX
from switchboard.resources.calls.media.media_socket import AsgiMediaSocket, refuse_socket
from switchboard.resources.phone_numbers.purchases import build_callback_urls

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope

logger = structlog.get_logger()
STOP_SECONDS = 3.0
PER_ADDRESS = Limit(per_second=0.5, burst=20)
MAX_WAITING = 200
"""Sockets of one process whose first message, with the token, has not arrived. Nobody has authenticated them."""


class _BrowserSocket(AsgiMediaSocket):
    """A socket that leaves the set of those that wait with its first message."""

    def __init__(
        self, receive: "ASGIReceiveCallable", send: "ASGISendCallable", waiting: set["_BrowserSocket"]
    ) -> None:
        super().__init__(receive, send)
        self._waiting = waiting
        waiting.add(self)

    async def receive(self) -> Frame | None:
        message = await super().receive()
        self._waiting.discard(self)
        return message


@dataclass(frozen=True, slots=True)
class BrowserPhoneServer:
    """Holds browsers' calls."""

    settings: Settings
    providers: Providers
    engine: CallEngine
    limiter: RateLimiter
    waiting: set[_BrowserSocket] = field(default_factory=set, init=False)

    async def is_admitted(self, address: str) -> bool:
        """Return whether another anonymous socket of this address may wait for its token."""
        if len(self.waiting) >= MAX_WAITING:
            return False
        return (await self.limiter.check_address("browser-call", address, PER_ADDRESS)).allowed

    async def hold_call(self, socket: _BrowserSocket, carrier: BrowserPhone, callbacks: CallbackUrls) -> None:
        """Hold a call until it ends or this process stops; then end a call whose agent runs in another process."""
        holding = asyncio.create_task(carrier.serve_browser(socket, callbacks))
        stopping = asyncio.create_task(self.engine.stopping.wait())
        try:
            await asyncio.wait({holding, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({holding}, timeout=STOP_SECONDS)
        finally:
            self.waiting.discard(socket)
            for task in (holding, stopping):
                task.cancel()
            await asyncio.gather(holding, stopping, return_exceptions=True)
        if not holding.cancelled():
            holding.result()


async def browser_phone_socket(
    scope: "WebsocketScope", receive: "ASGIReceiveCallable", send: "ASGISendCallable", *, server: BrowserPhoneServer
) -> None:
    """Hold one browser's call.

    An unknown organization, a carrier without such calls, and one socket too many are refused with 403.
    """
    await receive()
    name, _, organization = scope["path"].removeprefix(PREFIX).rpartition("/")
    organization_id = parse_id(organization)
    if organization_id is None or not await server.is_admitted(scope["client"][0] if scope["client"] else ""):
        return await refuse_socket(send)
    try:
        async with server.providers.use(organization_id, TelephonyProvider, name) as carrier:
            if not isinstance(carrier, BrowserPhone):
                return await refuse_socket(send)
            await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
            socket = _BrowserSocket(receive, send, server.waiting)
            callbacks = build_callback_urls(server.settings.base_url, organization_id, name)
            await server.hold_call(socket, carrier, callbacks)
            await socket.close()
            await socket.drain()
    except ProviderError as error:
        logger.warning("a browser call was refused", carrier=name, reason=error.message)
        return await refuse_socket(send)
    return None
