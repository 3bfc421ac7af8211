"""Voice calls of a website's visitors, over the platform's WebSocket.

A visitor's token is one of the carrier's browser tokens, whose identity names the widget and the conversation. It
reaches the widget's agent, whatever is dialed with it, and only once. It also names the chat that the visitor has
written before, if there is one: the call goes on with it.
"""

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, TenantSession, new_id
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, RateLimited, SpendLimitReached
from switchboard.plugin_sdk import BrowserCall, IncomingCall, Instruction, RejectCall
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.browser_calls import service as browser_calls
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.browser import AGENT
from switchboard.resources.calls.chats import CHAT_ID, VISITOR, is_chat_over
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.models import CHAT, Call
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.widgets.admission import add_session, require_place
from switchboard.resources.widgets.models import Widget, WidgetSession

logger = structlog.get_logger()
_IDENTITY: Final = re.compile(r"widget_([0-9a-f]{32})_([0-9a-f]{32})(?:_([0-9a-f]{32}))?")


@dataclass(frozen=True, slots=True)
class VisitorCall:
    """Connection and token for one call. `to_number` is for the call's first message."""

    session_id: UUID
    url: str
    token: str
    to_number: str


@dataclass(frozen=True, slots=True)
class VisitorCalls:
    """Prepares calls of visitors."""

    settings: Settings
    database: Database
    registry: Registry
    providers: Providers

    async def prepare_call(self, widget: Widget, chat_session_id: UUID | None) -> VisitorCall:
        """Return what the browser needs for one call, which goes on with the conversation's chat, if there is one.

        Raises `NotFound` if visitors may not talk, `InvalidState` if no carrier of the organization can do it, and
        `RateLimited` or `SpendLimitReached` at the widget's limits.
        """
        if not widget.voice_enabled:
            raise NotFound("The widget takes no calls.")
        session_id = new_id()
        named = [widget.id.hex, session_id.hex, *([chat_session_id.hex] if chat_session_id else [])]
        async with self.database.tenant(widget.organization_id) as session:
            await require_place(session, widget)
            minted = await browser_calls.create_browser_token(
                session,
                self.providers,
                self.settings,
                carrier=await browser_calls.find_talk_carrier(session, self.providers, self.registry, ()),
                identity="_".join((VISITOR, *named)),
                platform="web",
            )
        return VisitorCall(session_id, minted.connection["url"], minted.token, f"{AGENT}{widget.agent_id}")


async def answer_visitor_call(
    database: Database, router: InboundCallRouter, organization_id: UUID, carrier: str, browser: BrowserCall
) -> Instruction:
    """Decide what becomes of a visitor's call, record it, and return the instruction for the carrier."""
    identity = _IDENTITY.fullmatch(browser.identity)
    if identity is None:
        return RejectCall()
    widget_id, session_id = UUID(identity[1]), UUID(identity[2])
    async with database.tenant(organization_id) as session:
        widget = await session.find(Widget, widget_id)
        if widget is None or not (widget.enabled and widget.voice_enabled):
            return RejectCall()
        if await calls.find_call_by_carrier_id(session, carrier, browser.carrier_call_id) is None:
            try:
                if await session.find(WidgetSession, session_id) is not None:
                    return RejectCall()
                await add_session(session, widget, session_id=session_id)
            except (RateLimited, SpendLimitReached) as refusal:
                logger.warning("a visitor's call was refused", widget_id=str(widget_id), reason=refusal.detail)
                return RejectCall("busy")
        number = await numbers.find_number_of_agent(session, widget.agent_id)
    incoming = IncomingCall(browser.carrier_call_id, VISITOR, number.phone_number if number else VISITOR)
    instruction = await router.answer_inbound_call(organization_id, carrier, incoming, agent_id=widget.agent_id)
    async with database.tenant(organization_id) as session:
        held = await session.find(WidgetSession, session_id, lock=True)
        call = await calls.find_call_by_carrier_id(session, carrier, browser.carrier_call_id)
        if call is not None and held is not None and held.call_id is None:
            held.call_id = call.id
            call.call_metadata = {**call.call_metadata, **describe_widget(widget)}
        if call is not None and identity[3]:
            await _connect_chat(session, UUID(identity[3]), widget, call)
    return instruction


async def _connect_chat(session: TenantSession, session_id: UUID, widget: Widget, call: Call) -> None:
    """Connect a call with the chat that it goes on with, unless that is over."""
    held = await session.find(WidgetSession, session_id)
    if held is None or held.widget_id != widget.id or held.call_id is None:
        return
    chat = await session.find(Call, held.call_id)
    if chat is not None and chat.carrier == CHAT and not is_chat_over(chat):
        call.call_metadata = {**call.call_metadata, CHAT_ID: str(chat.id)}


def describe_widget(widget: Widget) -> dict[str, str]:
    """Return the metadata of the widget's conversations."""
    return {"widget_id": str(widget.id), "widget": widget.name}
