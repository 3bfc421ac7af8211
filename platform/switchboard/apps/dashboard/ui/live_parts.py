"""Live parts of pages: rendered again each second, and sent as a server-sent event when they differ.

A template contains `<div data-live="{{ url }}">{% include part %}</div>`; `static/js/live.js` replaces the content.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from quart import Response, stream_with_context

from switchboard.apps.dashboard.viewer import BrowserSessions, Viewer
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import Database, TenantSession

EVERY_SECONDS = 1.0
BREATHS = 15
RECONNECT = b"retry: 1000\n\n"
"""The end of a stream whose server stops: the browser connects again, to another server, after a second."""


class FinalPart(str):
    """The last content of a part; the stream ends with it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LiveParts:
    """Streams parts of pages to browsers."""

    sessions: BrowserSessions
    database: Database
    engine: CallEngine

    async def stream(self, viewer: Viewer, show: Callable[[TenantSession], Awaitable[str]]) -> Response:
        """Stream what `show` renders. The stream ends when the browser disconnects, after a `FinalPart`, or when the
        viewer signs out or switches organizations. When the server stops, the browser is told to reconnect.
        """

        @stream_with_context
        async def stream() -> AsyncGenerator[bytes, None]:
            shown, rounds = "", 0
            while not self.engine.stopping.is_set() and await self._still_here(viewer):
                async with self.database.tenant(viewer.organization_id) as session:
                    fresh = await show(session)
                if fresh != shown:
                    yield _event(fresh)
                    shown = fresh
                elif rounds % BREATHS == 0:
                    yield b": still here\n\n"
                if isinstance(fresh, FinalPart):
                    break
                rounds += 1
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_SECONDS):
                        await self.engine.stopping.wait()
            yield RECONNECT if self.engine.stopping.is_set() else b"event: over\ndata:\n\n"

        response = Response(stream(), headers={"X-Accel-Buffering": "no"}, content_type="text/event-stream")
        response.timeout = None
        return response

    async def _still_here(self, viewer: Viewer) -> bool:
        """Return whether the viewer is still signed in to the same organization. A removed member's session has no
        organization.
        """
        now = await self.sessions.find_viewer()
        return now is not None and now.organization is not None and now.organization.id == viewer.organization_id


def _event(text: str) -> bytes:
    return "".join(f"data: {line}\n" for line in text.splitlines()).encode() + b"\n"
