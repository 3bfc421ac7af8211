"""Answering calls in the browser: `static/js/answer.js` waits for calls to a name that the user chooses."""

import re

from pydantic import BaseModel
from quart import Response, jsonify

from switchboard.apps.dashboard.blueprint import action, page
from switchboard.apps.dashboard.pages.agents.client_sdks import CLIENT_SDKS, list_installed_sdks, render_with_sdk
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.schemas import ClientName
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.browser_calls.service import BrowserTokenMint
from switchboard.resources.destinations.clients import build_client_identity, find_client_carrier

NO_CARRIER = LazyText("None of the organization's carriers can ring browsers.")


class AnsweringForm(BaseModel):
    """The name under which the browser is rung."""

    name: ClientName


@page("/dashboard/live/answer", role="agent")
async def answering_page(session: ReadSession, viewer: Viewer, settings: Settings, registry: Registry) -> Response:
    """Show the page for answering calls. It may connect to the carrier of its client SDK only."""
    carrier = await find_client_carrier(session, registry)
    sdk = list_installed_sdks(settings).get(carrier or "")
    missing = "" if carrier else NO_CARRIER
    if carrier in CLIENT_SDKS and sdk is None:
        missing = _(
            "Answering calls here needs the client SDK of %(carrier)s, which the operator installs.",
            carrier=CLIENT_SDKS[carrier].title,
        )
    name = re.sub(r"[^A-Za-z0-9_]", "_", viewer.user.email.partition("@")[0])[:50]
    return await render_with_sdk(
        "dashboard/live/answer.html", None if missing else sdk, carrier=carrier or "", missing=missing, name=name
    )


@action("/dashboard/live/answer", role="agent", form=AnsweringForm, outlasts_support=True, for_script=True)
async def begin_answering(
    session: WriteSession, data: AnsweringForm, registry: Registry, mint: BrowserTokenMint
) -> Response:
    """Return the token and the connection with which the browser waits for calls."""
    carrier = await find_client_carrier(session, registry)
    if carrier is None:
        raise InvalidState(NO_CARRIER)
    identity = build_client_identity(session.organization_id, data.name)
    minted = await mint.mint_token(session, carrier=carrier, identity=identity, platform="web")
    return jsonify({"token": minted.token, "connection": minted.connection, "carrier": minted.provider})
