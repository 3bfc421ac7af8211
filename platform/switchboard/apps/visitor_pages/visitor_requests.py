"""Requests of the widget's frame. They need no credential, so each is limited by the client's address first."""

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import Field, ValidationError
from quart import Blueprint, Response, jsonify, request

from switchboard.foundation.database import Database
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import Forbidden, PayloadTooLarge, RateLimited, ValidationFailed
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimitDecision, RateLimiter
from switchboard.foundation.web.schemas import RequestBody
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.resources.widgets.admission import count_session
from switchboard.resources.widgets.models import Widget
from switchboard.resources.widgets.service import get_public_widget
from switchboard.resources.widgets.visitors import VisitorCalls, VisitorChats

blueprint = Blueprint("visitor_requests", __name__)
PER_ADDRESS: Final = Limit(per_second=2, burst=60)
PER_SESSION: Final = Limit(per_second=0.5, burst=10)
"""Messages of one conversation."""
MAX_BODY_BYTES: Final = 16 * 1024


class VisitorMessage(RequestBody):
    text: Annotated[str, Field(min_length=1, max_length=2_000)]


@dataclass(frozen=True, slots=True)
class VisitorAdmission:
    """Admits requests of the widget's frame."""

    settings: Settings
    database: Database
    limiter: RateLimiter
    keyring: KeyRing

    async def admit(self, public_key: str) -> tuple[Widget, UUID | None]:
        """Return the widget, and the conversation that the request goes on with.

        Raises `RateLimited`, `NotFound` for an unknown key, and `Forbidden` for a request of another site's page.
        """
        _require_allowed(await self.limiter.check_address("widget", request.remote_addr or "", PER_ADDRESS))
        origin = request.headers.get("Origin")
        if origin not in (None, self.settings.base_url) and urlsplit(origin).netloc != request.host:
            raise Forbidden("The request came from another site's page.")
        widget = await get_public_widget(self.database, public_key)
        parts = self._tokens.read(request.headers.get("Authorization", "").removeprefix("Bearer "))
        return widget, UUID(parts[1]) if parts is not None and parts[0] == widget.id.hex else None

    def sign_session(self, widget: Widget, session_id: UUID) -> str:
        """Return the token with which a visitor's browser goes on with a conversation, which names its widget too."""
        return self._tokens.sign(widget.id.hex, session_id.hex)

    @property
    def _tokens(self) -> SignedTokens:
        return SignedTokens(self.keyring, "widget session")


def _require_allowed(checked: RateLimitDecision) -> None:
    if not checked.allowed:
        raise RateLimited(headers={"Retry-After": str(max(1, round(checked.reset_seconds)))})


@blueprint.post("/widget/<public_key>/messages")
@inject
async def send_visitor_message(
    public_key: str, admission: VisitorAdmission, chats: VisitorChats, limiter: RateLimiter
) -> Response:
    """Answer a message of a visitor."""
    widget, session_id = await admission.admit(public_key)
    message = await _read_message()
    if session_id is not None:
        _require_allowed(await limiter.check("widget-messages", f"widget-session:{session_id}", PER_SESSION))
    held_id, answer = await chats.answer_message(widget, session_id, message.text, address=request.remote_addr or "")
    return jsonify({"session": admission.sign_session(widget, held_id), "answer": answer})


@blueprint.get("/widget/<public_key>/messages")
@inject
async def list_visitor_messages(public_key: str, admission: VisitorAdmission, chats: VisitorChats) -> Response:
    """List what was said in the conversation, for a page that was loaded again, and as captions of a call."""
    widget, session_id = await admission.admit(public_key)
    entries = [] if session_id is None else await chats.list_entries(widget, session_id)
    return jsonify({"entries": entries})


@blueprint.post("/widget/<public_key>/calls")
@inject
async def begin_visitor_call(
    public_key: str, admission: VisitorAdmission, calls: VisitorCalls, limiter: RateLimiter
) -> Response:
    """Return what the browser needs for one call, which goes on with the visitor's chat."""
    widget, session_id = await admission.admit(public_key)
    await count_session(limiter, widget, request.remote_addr or "")
    call = await calls.prepare_call(widget, session_id)
    session = admission.sign_session(widget, call.session_id)
    return jsonify({"session": session, "url": call.url, "token": call.token, "to_number": call.to_number})


async def _read_message() -> VisitorMessage:
    raw = await request.get_data(as_text=False, cache=False, parse_form_data=False)
    if len(raw) > MAX_BODY_BYTES:
        raise PayloadTooLarge
    try:
        return VisitorMessage.model_validate_json(raw)
    except ValidationError as error:
        raise ValidationFailed.from_error(error) from None


@blueprint.after_request
async def keep_private(response: Response) -> Response:
    """Keep conversations out of caches."""
    response.headers["Cache-Control"] = "no-store"
    return response
