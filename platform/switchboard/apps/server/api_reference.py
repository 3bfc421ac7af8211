"""`/openapi.json`, and `/docs`: the same as a page, rendered without scripts or foreign hosts."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from markupsafe import Markup, escape
from quart import Blueprint, Quart, Response, current_app, request

from switchboard.foundation.events.catalog import CATALOG, build_delivery_model
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.openapi import Json, WebhookEvent, build_document
from switchboard.foundation.web.pipeline import inject

blueprint = Blueprint("reference", __name__, template_folder="templates")
Build: TypeAlias = Callable[[Quart, str], bytes]
"""Builds the content from the application and its public URL."""
CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


@blueprint.app_template_filter("inline_code")
def inline_code(text: str | None) -> Markup:
    """Render the `code` in a description as HTML code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text or ""))))  # noqa: S704 - escaped just now


def build_openapi_document(app: Quart, base_url: str) -> Json:
    """Build the OpenAPI document of an application."""
    events = [WebhookEvent(name, kind.__doc__ or "", build_delivery_model(kind)) for name, kind in CATALOG.items()]
    return build_document(app, server=base_url, events=events)


@dataclass(frozen=True, slots=True)
class ConstantResponse:
    """A response of constant content with an entity tag. Anybody may ask for it, so it is built once, in a thread:
    the event loop carries audio.
    """

    settings: Settings
    _building: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _built: list[bytes] = field(default_factory=list, init=False)

    async def respond(self, build: Build, content_type: str) -> Response:
        """Return the content; 304 to a client that has it (RFC 9110, 13.1.2)."""
        async with self._building:
            if not self._built:
                # The proxy means nothing in another thread.
                app: Quart = current_app._get_current_object()  # type: ignore[attr-defined]  # noqa: SLF001
                self._built.append(await asyncio.to_thread(build, app, self.settings.base_url))
        (content,) = self._built
        response = Response(content, content_type=content_type)
        response.set_etag(hashlib.sha256(content).hexdigest()[:32])
        response.headers["Cache-Control"] = "no-cache"
        await response.make_conditional(request)
        return response


@blueprint.get("/openapi.json")
@inject
async def openapi_json(document: ConstantResponse) -> Response:
    """Serve the OpenAPI 3.1 document."""
    return await document.respond(_build_json, "application/json")


@blueprint.get("/docs")
@inject
async def docs(page: ConstantResponse) -> Response:
    """Serve the API reference."""
    response = await page.respond(_build_page, "text/html; charset=utf-8")
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    return response


def _build_json(app: Quart, base_url: str) -> bytes:
    return json.dumps(build_openapi_document(app, base_url)).encode()


def _build_page(app: Quart, base_url: str) -> bytes:
    template = app.jinja_env.get_template("reference.html")
    return template.render(api=build_openapi_document(app, base_url)).encode()
