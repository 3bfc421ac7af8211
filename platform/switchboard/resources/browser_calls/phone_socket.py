"""WebSocket of browsers and apps that call over a carrier without a client SDK:
`/browser-calls/<carrier>/<organization>`.

The carrier's plugin speaks the protocol and asks for a token. Any page may connect, as it may with a carrier's SDK.
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING

import structlog

from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.schemas import parse_id
from switchboard.plugin_sdk import BrowserPhone, ProviderError, TelephonyProvider
from switchboard.resources.browser_calls.service import PREFIX
from switchboard.resources.calls.media.media_socket import AsgiMediaSocket, refuse_socket
from switchboard.resources.phone_numbers.purchases import build_callback_urls

if TYPE_CHECKING:
    from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, WebsocketScope

logger = structlog.get_logger()
STOP_SECONDS = 3.0


async def _until_stopping(engine: CallEngine, call: Coroutine[None, None, None]) -> None:
    """Hold a call until it ends or this process stops; then end a call whose agent runs in another process."""
    holding, stopping = asyncio.create_task(call), asyncio.create_task(engine.stopping.wait())
    try:
        await asyncio.wait({holding, stopping}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({holding}, timeout=STOP_SECONDS)
    finally:
        for task in (holding, stopping):
            task.cancel()
        await asyncio.gather(holding, stopping, return_exceptions=True)
    if not holding.cancelled():
        holding.result()


async def browser_phone_socket(
    scope: "WebsocketScope",
    receive: "ASGIReceiveCallable",
    send: "ASGISendCallable",
    *,
    settings: Settings,
    providers: Providers,
    engine: CallEngine,
) -> None:
    """Hold one browser's call. An unknown organization, or a carrier without such calls, is refused with 403."""
    await receive()
    name, _, organization = scope["path"].removeprefix(PREFIX).partition("/")
    organization_id = parse_id(organization)
    if organization_id is None:
        return await refuse_socket(send)
    try:
        async with providers.use(organization_id, TelephonyProvider, name) as carrier:
            if not isinstance(carrier, BrowserPhone):
                return await refuse_socket(send)
            await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
            socket = AsgiMediaSocket(receive, send)
            await _until_stopping(
                engine,
                carrier.serve_browser(socket, build_callback_urls(settings.base_url, organization_id, name)),
            )
            await socket.close()
            await socket.drain()
    except ProviderError as error:
        logger.warning("a browser call was refused", carrier=name, reason=error.message)
        return await refuse_socket(send)
    return None
