"""The application: the list of blueprints and sockets, bound to a process's parts."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from hypercorn.middleware import ProxyFixMiddleware
from quart import Quart
from werkzeug.routing import BaseConverter

from switchboard.apps.dashboard.routes import dashboard
from switchboard.apps.docs.routes import blueprint as docs
from switchboard.apps.server.health import blueprint as health
from switchboard.apps.server.web_context import add_context
from switchboard.apps.visitor_pages import pages as visitor_pages
from switchboard.apps.visitor_pages import visitor_requests
from switchboard.foundation.injection import resolve_parameters
from switchboard.foundation.jobs import run_beside
from switchboard.foundation.web import problems
from switchboard.foundation.web.compression import install_compression
from switchboard.foundation.web.endpoint import MAX_BODY_BYTES
from switchboard.resources.agents.routes import blueprint as agents
from switchboard.resources.analytics.routes import blueprint as analytics
from switchboard.resources.appointments.routes import blueprint as appointments
from switchboard.resources.appointments.watches import blueprint as calendar_reports
from switchboard.resources.automations.routes import blueprint as automations
from switchboard.resources.billing.routes import blueprint as billing
from switchboard.resources.browser_calls.phone_socket import browser_phone_socket
from switchboard.resources.browser_calls.routes import blueprint as browser_calls
from switchboard.resources.browser_calls.service import PREFIX as BROWSER
from switchboard.resources.calls.allowance import CallAdmission
from switchboard.resources.calls.browser import ANSWERERS
from switchboard.resources.calls.callbacks import blueprint as carriers
from switchboard.resources.calls.chats import VISITOR
from switchboard.resources.calls.live.channel import listen_for_messages
from switchboard.resources.calls.live.heartbeat import run_heartbeat
from switchboard.resources.calls.live.monitor_socket import serve_monitor_socket
from switchboard.resources.calls.live.tickets import PREFIX as LIVE
from switchboard.resources.calls.media.media_socket import PREFIX as MEDIA
from switchboard.resources.calls.media.media_socket import serve_media_socket
from switchboard.resources.calls.media_servers import MediaServers
from switchboard.resources.calls.recordings.uploads import RecordingUploader
from switchboard.resources.calls.routes import blueprint as calls
from switchboard.resources.campaigns.routes import blueprint as campaigns
from switchboard.resources.contacts.routes import blueprint as contacts
from switchboard.resources.do_not_call.routes import blueprint as do_not_call
from switchboard.resources.exports.routes import blueprint as exports
from switchboard.resources.integrations.routes import blueprint as integrations
from switchboard.resources.knowledge_bases.routes import blueprint as knowledge_bases
from switchboard.resources.oauth.routes import blueprint as oauth
from switchboard.resources.phone_numbers.routes import blueprint as phone_numbers
from switchboard.resources.privacy.routes import blueprint as privacy
from switchboard.resources.simulations.routes import blueprint as simulations
from switchboard.resources.sms.routes import blueprint as sms
from switchboard.resources.usage.routes import blueprint as usage
from switchboard.resources.webhooks.routes import blueprint as webhooks
from switchboard.resources.widgets.routes import blueprint as widgets
from switchboard.resources.widgets.visitors import answer_visitor_call
from switchboard.runtime import EXTENSION, Runtime

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope


class ProviderNameConverter(BaseConverter):
    """Name of a provider, plain (`openai`) or with its plugin (`llm/openai`): `<provider:carrier>` in a route."""

    regex = "[^/]+(?:/[^/]+)?"
    part_isolating = False


# WebSockets as a bare ASGI application beside Quart.
#
# With bare ASGI a closed socket is a message, not the cancellation of a task that still has a call to save, and no
# frame pays for Quart's own work (docs/decisions/0014-media-socket-is-bare-asgi.md).

Handler: TypeAlias = Callable[..., Awaitable[None]]
"""Serves one socket: `async def serve(scope, receive, send, keyring: KeyRing)`. Its other parameters are parts and
services of the process.
"""
ARGUMENTS = frozenset({"scope", "receive", "send"})


# In the order of the API reference.
BLUEPRINTS: Final = (
    agents, widgets, calls, browser_calls, campaigns, contacts, do_not_call, exports, privacy, phone_numbers, sms,
    webhooks, billing, usage, analytics, appointments, automations, integrations, knowledge_bases, simulations, oauth,
    carriers, calendar_reports, dashboard, docs, visitor_pages, visitor_requests, health,
)  # fmt: skip
# By path prefix.
SOCKETS: dict[str, Handler] = {MEDIA: serve_media_socket, LIVE: serve_monitor_socket, BROWSER: browser_phone_socket}
ANSWERERS[VISITOR] = answer_visitor_call


def create_routes() -> Quart:
    """Create an application with every route, not yet bound to a process's parts."""
    app = Quart("switchboard")
    app.config["MAX_CONTENT_LENGTH"] = app.config["MAX_FORM_MEMORY_SIZE"] = MAX_BODY_BYTES
    problems.install(app)
    install_compression(app)
    app.url_map.converters["provider"] = ProviderNameConverter
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app


def create_app(parts: Runtime) -> Quart:
    """Create the HTTP application of a process. Its engine starts and stops with it."""
    app, uploader = create_routes(), parts.call(RecordingUploader)
    app.extensions[EXTENSION] = parts
    add_context(app, parts)

    @app.while_serving
    async def run_calls() -> AsyncGenerator[None, None]:
        await parts.engine.start()
        async with (
            run_beside(listen_for_messages(parts.redis, parts.node, parts.engine)),
            run_beside(parts.call(run_heartbeat)),
            run_beside(parts.call(CallAdmission).run_reports()),
            run_beside(parts.call(MediaServers).run_reports()),
            run_beside(uploader.run()),
        ):
            yield
            await parts.engine.close()
        await uploader.finish()

    return app


def build_asgi_app(app: Quart, parts: Runtime) -> "ASGIFramework":
    """Return the application as ASGI, with WebSockets served by the handler of their path's prefix. Behind trusted
    proxies it sees the client's address. Raise `InvalidParameter`.
    """
    sockets = {
        prefix: partial(handler, **resolve_parameters(handler, parts.parts, ARGUMENTS))
        for prefix, handler in SOCKETS.items()
    }

    async def serve(scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable") -> None:
        if scope["type"] == "websocket":
            for prefix, socket in sockets.items():
                if scope["path"].startswith(prefix):
                    await socket(scope, receive, send)
                    return
        await app(scope, receive, send)

    hops = parts.settings.trusted_proxies
    return ProxyFixMiddleware(serve, mode="legacy", trusted_hops=hops) if hops else serve
