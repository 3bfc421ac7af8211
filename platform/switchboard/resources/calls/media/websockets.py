"""WebSockets as a bare ASGI application beside Quart.

With bare ASGI a closed socket is a message, not the cancellation of a task that still has a call to save, and no frame
pays for Quart's own work (docs/decisions/0014-media-socket-is-bare-asgi.md).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from switchboard.runtime import Runtime

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope, WebsocketScope

Handler: TypeAlias = "Callable[[Runtime, WebsocketScope, ASGIReceiveCallable, ASGISendCallable], Awaitable[None]]"


def route_websockets(
    application: "ASGIFramework", runtime: Runtime, handlers: Mapping[str, Handler]
) -> "ASGIFramework":
    """Wrap an application so that WebSockets go to the handler of their path's prefix."""

    async def serve(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
        if scope["type"] == "websocket":
            for prefix, handler in handlers.items():
                if scope["path"].startswith(prefix):
                    await handler(runtime, scope, receive, send)
                    return
        await application(scope, receive, send)

    return serve
