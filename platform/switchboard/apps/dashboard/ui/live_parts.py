"""Parts of pages that change while one looks: rendered here again each second, sent as a server-sent event when they differ.

A template says `<div data-live="{{ url }}">{% include part %}</div>`; `static/js/live.js` puts in what comes.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from quart import Response, stream_with_context

from switchboard.apps.dashboard.viewer import Viewer, find_viewer
from switchboard.foundation.database import TenantSession
from switchboard.runtime import current_runtime

EVERY_SECONDS = 1.0
BREATHS = 15


class Last(str):
    """What a part shows when nothing more is to come: the stream ends with it."""

    __slots__ = ()


async def live(viewer: Viewer, show: Callable[[TenantSession], Awaitable[str]]) -> Response:
    """A stream of what `show` renders. It ends when the browser leaves, with a `Last`, or when who looks has signed out or works elsewhere."""

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
            if isinstance(fresh, Last):
                break
            rounds += 1
            await asyncio.sleep(EVERY_SECONDS)
        yield b"event: over\ndata:\n\n"

    response = Response(stream(), headers={"X-Accel-Buffering": "no"}, content_type="text/event-stream")
    response.timeout = None
    return response


async def _still_here(viewer: Viewer) -> bool:
    """Whether they are signed in as before: somebody who is no longer a member has a session still, and no organization in it."""
    now = await find_viewer()
    return now is not None and now.organization is not None and now.organization.id == viewer.organization_id


def _event(text: str) -> bytes:
    return "".join(f"data: {line}\n" for line in text.splitlines()).encode() + b"\n"
