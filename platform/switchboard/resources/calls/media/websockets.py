"""WebSockets as a bare ASGI application beside Quart.

With bare ASGI a closed socket is a message, not the cancellation of a task that still has a call to save, and no frame
pays for Quart's own work (docs/decisions/0014-media-socket-is-bare-asgi.md).
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from switchboard.foundation.injection import Parts, resolve_parameters

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope, WebsocketScope

Handler: TypeAlias = Callable[..., Awaitable[None]]
"""Serves one socket: `async def serve(scope, receive, send, keyring: KeyRing)`. Its other parameters are parts and
services of the process.
"""
Socket: TypeAlias = "Callable[[WebsocketScope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]"
ARGUMENTS = frozenset({"scope", "receive", "send"})


def route_websockets(application: "ASGIFramework", parts: Parts, handlers: Mapping[str, Handler]) -> "ASGIFramework":
    """Wrap an application so that WebSockets go to the handler of their path's prefix. Raise `InvalidParameter`."""
    sockets: dict[str, Socket] = {
        prefix: partial(handler, **resolve_parameters(handler, parts, ARGUMENTS))
        for prefix, handler in handlers.items()
    }

    async def serve(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
        if scope["type"] == "websocket":
            for prefix, socket in sockets.items():
                if scope["path"].startswith(prefix):
                    await socket(scope, receive, send)
                    return
        await application(scope, receive, send)

    return serve
