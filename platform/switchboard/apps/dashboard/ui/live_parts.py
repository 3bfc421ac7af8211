"""Live parts of pages: rendered again each second, and sent as a server-sent event when they differ.

A template contains `<div data-live="{{ url }}">{% include part %}</div>`; `static/js/live.js` replaces the content.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from quart import Response, stream_with_context

from switchboard.apps.dashboard.viewer import Viewer, find_viewer
from switchboard.foundation.database import TenantSession
from switchboard.runtime import current_runtime

EVERY_SECONDS = 1.0
BREATHS = 15


class FinalPart(str):
    """The last content of a part; the stream ends with it."""

    __slots__ = ()


async def stream_part(viewer: Viewer, show: Callable[[TenantSession], Awaitable[str]]) -> Response:
    """Stream what `show` renders. The stream ends when the browser disconnects, after a `Last`, or when the viewer
    signs out or switches organizations.
    """

    @stream_with_context
    async def stream() -> AsyncGenerator[bytes, None]:
        shown, rounds = "", 0
        while await _still_here(viewer):
            async with current_runtime().database.tenant(viewer.organization_id) as session:
                fresh = await show(session)
            if fresh != shown:
                yield _event(fresh)
                shown = fresh
            elif rounds % BREATHS == 0:
                yield b": still here\n\n"
            if isinstance(fresh, FinalPart):
                break
            rounds += 1
            await asyncio.sleep(EVERY_SECONDS)
        yield b"event: over\ndata:\n\n"

    response = Response(stream(), headers={"X-Accel-Buffering": "no"}, content_type="text/event-stream")
    response.timeout = None
    return response


async def _still_here(viewer: Viewer) -> bool:
    """Return whether the viewer is still signed in to the same organization. A removed member's session has no
    organization.
    """
    now = await find_viewer()
    return now is not None and now.organization is not None and now.organization.id == viewer.organization_id


def _event(text: str) -> bytes:
    return "".join(f"data: {line}\n" for line in text.splitlines()).encode() + b"\n"
