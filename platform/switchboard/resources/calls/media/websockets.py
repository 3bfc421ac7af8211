"""WebSockets as a bare ASGI application beside Quart.

Bare, because a closed socket is then an answer ("closed") and not the cancellation of a task that still has a call to write down, and because
it spares each frame Quart's share of the work.
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
    """An application that holds the sockets whose paths begin so itself, and leaves everything else to the one given."""

    async def serve(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
        if scope["type"] == "websocket":
            for prefix, handler in handlers.items():
                if scope["path"].startswith(prefix):
                    await handler(runtime, scope, receive, send)
                    return
        await application(scope, receive, send)

    return serve
