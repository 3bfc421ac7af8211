"""The carriers' client SDKs for talking in the browser: files that the operator downloads, served from this host
(docs/how-to/browser-calls.md).
"""

from dataclasses import dataclass
from pathlib import Path

from quart import Response, send_file

from switchboard.apps.dashboard.blueprint import content_security_policy, page
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound


@dataclass(frozen=True, slots=True)
class ClientSdk:
    """A client SDK's file, and the hosts that it connects to, for the policy's `connect-src`. Media use WebRTC, which
    the policy does not cover.
    """

    title: str
    file: str
    hosts: str


CLIENT_SDKS = {
    "twilio": ClientSdk("Twilio", "twilio.min.js", "https://eventgw.twilio.com wss://voice-js.roaming.twilio.com"),
    "telnyx": ClientSdk("Telnyx", "telnyx.bundle.mjs", "wss://rtc.telnyx.com"),
}
"""Client SDKs by carrier. The hosts are from @twilio/voice-sdk's README (without its CDN and sounds) and from Telnyx's
network requirements.
"""


def list_installed_sdks(settings: Settings) -> dict[str, ClientSdk]:
    """Return the client SDKs whose files are installed."""
    return {carrier: sdk for carrier, sdk in CLIENT_SDKS.items() if _path(settings, sdk.file) is not None}


async def render_with_sdk(template: str, sdk: ClientSdk | None, **context: object) -> Response:
    """Render a page on which a person talks. Only such pages may connect to a carrier, and only to that of their
    client SDK.
    """
    shown = await render(template, sdk=sdk, **context)
    changes = {"connect_src": f"'self' {sdk.hosts}", "media_src": "'self' blob: mediastream:"} if sdk else {}
    return Response(shown, headers={"Content-Security-Policy": content_security_policy(**changes)})


@page("/dashboard/client-sdks/<filename>", role="agent")
async def client_sdk(filename: str, settings: Settings) -> Response:
    """Serve a client SDK's file. Only known names are served; the file is not cached, so that a new version takes
    effect immediately.
    """
    path = _path(settings, filename) if filename in {sdk.file for sdk in CLIENT_SDKS.values()} else None
    if path is None:
        raise NotFound(_("The client SDK %(filename)s does not exist.", filename=filename))
    response = await send_file(path, mimetype="text/javascript", conditional=True)
    response.headers["Cache-Control"] = "no-cache"
    return response


def _path(settings: Settings, file: str) -> Path | None:
    path = settings.browser_sdks_dir and settings.browser_sdks_dir / file
    return path if path and path.is_file() else None
