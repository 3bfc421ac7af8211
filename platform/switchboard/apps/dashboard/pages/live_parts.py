"""The stream of live parts: one for a browser, however many parts its tabs show.

Browsers open six connections to a host over HTTP/1.1. With a stream for each part, a seventh page would wait for ever.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from markupsafe import escape
from quart import Response, current_app, request, stream_with_context
from werkzeug.exceptions import HTTPException

from switchboard.apps.dashboard.blueprint import FinalPart, PageDeclaration, page, render_page
from switchboard.apps.dashboard.viewer import BrowserSessions, PageForbidden, Viewer
from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import NotFound, OrganizationSuspended, ValidationFailed

EVERY_SECONDS = 1.0
BREATHS = 15
MAX_PARTS = 50
RECONNECT = b"retry: 1000\n\n"
"""The end of a stream whose server stops: the browser connects again, to another server, after a second."""
OVER = b"event: over\ndata:\n\n"
STILL_HERE = b": still here\n\n"


@dataclass(frozen=True, slots=True)
class FollowedPart:
    """A part by its address, and the page that renders it."""

    address: str
    page: PageDeclaration
    path: Mapping[str, str]
    query: Mapping[str, str]

    @classmethod
    def find(cls, address: str) -> "FollowedPart":
        """Find the part that has this address. Raises `NotFound`."""
        try:
            parts = urlsplit(address)
            endpoint, path = current_app.url_map.bind("").match(parts.path, "GET")
        except (ValueError, HTTPException) as error:
            raise NotFound(_("There is no live part %(address)s.", address=address)) from error
        declared = getattr(current_app.view_functions[endpoint], "page", None)
        if not isinstance(declared, PageDeclaration) or declared.live_seconds is None:
            raise NotFound(_("There is no live part %(address)s.", address=address))
        return cls(address, declared, path, dict(parse_qsl(parts.query)))

    def is_due(self, seconds: int) -> bool:
        """Return whether the part is rendered in this second of the stream."""
        return self.page.live_seconds is not None and seconds % self.page.live_seconds == 0

    async def render(self, viewer: Viewer) -> str:
        """Render the part. One that was deleted, or that the viewer may no longer see, is final."""
        try:
            self.page.require_access(viewer)
            html: str = await render_page(self.page, viewer, self.path, self.query)
        except (NotFound, PageForbidden, OrganizationSuspended):
            return FinalPart(f'<p class="empty">{escape(_("This was deleted."))}</p>')
        return html


@dataclass(frozen=True, slots=True)
class LivePartStreamer:
    """Streams parts to browsers."""

    sessions: BrowserSessions
    engine: CallEngine

    async def stream_parts(self, viewer: Viewer, parts: Sequence[FollowedPart]) -> AsyncGenerator[bytes, None]:
        """Yield an event for each part, and again when it has changed: `{"part", "html", "is_final"}`.

        The stream ends when every part is final, or when the viewer signs out. Parts of an organization are final when
        the viewer leaves it. When the server stops, the browser is told to reconnect.
        """
        shown, following, rounds = dict[str, str](), list(parts), 0
        while following and not self.engine.stopping.is_set():
            present = await self.sessions.find_viewer()
            if present is None:
                break
            for part in tuple(following):
                if not part.page.is_of_installation and not present.is_in(viewer.organization):
                    following.remove(part)  # a removed member's session has no organization
                    yield _build_event(part.address, None)
                    continue
                if not part.is_due(rounds):
                    continue
                fresh = await part.render(present)
                if isinstance(fresh, FinalPart):
                    following.remove(part)
                if fresh != shown.get(part.address) or isinstance(fresh, FinalPart):
                    shown[part.address] = fresh
                    yield _build_event(part.address, fresh)
            if rounds % BREATHS == 0:
                yield STILL_HERE
            rounds += 1
            if following:
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_SECONDS):
                        await self.engine.stopping.wait()
        yield RECONNECT if following and self.engine.stopping.is_set() else OVER


@page("/dashboard/live-parts", role="user")
async def live_parts(viewer: Viewer, streamer: LivePartStreamer) -> Response:
    """Stream the parts whose addresses are the parameters `part`, each of which has a role of its own."""
    addresses = list(dict.fromkeys(request.args.getlist("part")))
    if not 0 < len(addresses) <= MAX_PARTS:
        raise ValidationFailed(
            errors=[{"field": "part", "message": _("Name 1 to %(max_parts)s live parts.", max_parts=MAX_PARTS)}]
        )
    parts = [FollowedPart.find(address) for address in addresses]
    stream = stream_with_context(streamer.stream_parts)(viewer, parts)
    response = Response(stream, headers={"X-Accel-Buffering": "no"}, content_type="text/event-stream")
    response.timeout = None
    return response


def _build_event(address: str, html: str | None) -> bytes:
    """Return the event of a part. One without HTML can no longer be followed, and stays as it is."""
    message = {"part": address, "html": html, "is_final": html is None or isinstance(html, FinalPart)}
    return f"data: {json.dumps(message)}\n\n".encode()
