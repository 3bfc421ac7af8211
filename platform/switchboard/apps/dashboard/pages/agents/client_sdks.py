"""The carriers' client SDKs that pages talk to agents with: files that the operator downloaded, served from our own host (docs/live-calls.md)."""

from dataclasses import dataclass
from pathlib import Path

from quart import Response, send_file

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import page
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound
from switchboard.runtime import current_runtime


@dataclass(frozen=True, slots=True)
class ClientSdk:
    """A file for browsers, and where it connects to, as a policy's `connect-src` says it. Media go by WebRTC, beside the policy."""

    title: str
    file: str
    hosts: str


CLIENT_SDKS = {
    "twilio": ClientSdk("Twilio", "twilio.min.js", "https://eventgw.twilio.com wss://voice-js.roaming.twilio.com"),
    "telnyx": ClientSdk("Telnyx", "telnyx.bundle.mjs", "wss://rtc.telnyx.com"),
}
"""By carrier. The hosts are those of @twilio/voice-sdk's README (without its CDN and its sounds) and of Telnyx's network requirements."""


def present(settings: Settings) -> dict[str, ClientSdk]:
    """Those whose files are there."""
    return {carrier: sdk for carrier, sdk in CLIENT_SDKS.items() if _path(settings, sdk.file) is not None}


@dashboard.get("/dashboard/client-sdks/<filename>")
@page()
async def client_sdk(filename: str) -> Response:
    """One file of the folder; no other name leads into it. Not cached, so that a new version is there at once."""
    path = (
        _path(current_runtime().settings, filename) if filename in {sdk.file for sdk in CLIENT_SDKS.values()} else None
    )
    if path is None:
        raise NotFound(f"There is no client SDK {filename}.")
    response = await send_file(path, mimetype="text/javascript", conditional=True)
    response.headers["Cache-Control"] = "no-cache"
    return response


def _path(settings: Settings, file: str) -> Path | None:
    path = settings.browser_sdks_dir and settings.browser_sdks_dir / file
    return path if path and path.is_file() else None
