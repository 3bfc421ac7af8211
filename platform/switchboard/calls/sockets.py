"""The WebSockets of calls, as a bare ASGI application beside Quart.

Bare, because a closed socket is then an answer ("closed") and not the cancellation of a task that still has a call to write down, and because
it spares each frame Quart's share of the work.
"""

from typing import TYPE_CHECKING

from switchboard.calls import live_tickets, media_socket
from switchboard.calls.media_socket import media
from switchboard.calls.monitor_socket import monitor
from switchboard.runtime import Runtime

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope

HANDLERS = {media_socket.PREFIX: media, live_tickets.PREFIX: monitor}


def with_sockets(application: "ASGIFramework", runtime: Runtime) -> "ASGIFramework":
    """An application that holds these sockets itself and leaves everything else to the one given."""

    async def serve(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
        if scope["type"] == "websocket":
            for prefix, handler in HANDLERS.items():
                if scope["path"].startswith(prefix):
                    await handler(runtime, scope, receive, send)
                    return
        await application(scope, receive, send)

    return serve
