"""Chats and calls of a website's visitors. In a chat the agent answers each message with its model, prompt,
tools, and knowledge.

A message claims the conversation for a while (`answering_until`), the model runs without a transaction, and the answer,
its cost, and the end of the claim are saved together. A process that dies leaves the message without an answer.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.knowledge import UNHURRIED_SECONDS, SearchKnowledge, retrieve_context
from switchboard.engine.conversation.response_generator import fill_placeholders
from switchboard.engine.conversation.text_response import TextResponder
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.providers.conversation import open_agent_model
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.instances import Providers
from switchboard.engine.redaction.redactor import Redactor
from switchboard.foundation.database import Database, WriteSession, new_id, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.web.errors import (
    Conflict,
    InsufficientBalance,
    NotFound,
    RateLimited,
    SpendLimitReached,
    Unavailable,
)
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk import (
    BrowserCall,
    IncomingCall,
    Instruction,
    JsonObject,
    Message,
    ModelUsage,
    ProviderError,
    RejectCall,
    ToolCall,
    ToolContext,
    ToolSpec,
)
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.redaction import open_redactor
from switchboard.resources.agents.tools import AgentTools, build_agent_knowledge
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_embedding_cost, calculate_model_cost
from switchboard.resources.browser_calls.service import BrowserTokenMint
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.browser import AGENT
from switchboard.resources.calls.chats import CHAT_ID, VISITOR, is_chat_over, keep_open, list_chat_messages, start_chat
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.models import CHAT, Call, TranscriptLine
from switchboard.resources.calls.queries import find_call_by_carrier_id
from switchboard.resources.calls.states import is_over
from switchboard.resources.identity.service import get_policy
from switchboard.resources.phone_numbers.queries import find_number_of_agent
from switchboard.resources.widgets.admission import add_session, count_session, require_place, require_spend
from switchboard.resources.widgets.models import Widget, WidgetSession
from switchboard.resources.widgets.queries import count_transcript_lines

logger = structlog.get_logger()
THINKING_SECONDS: Final = 45.0
LEASE: Final = timedelta(seconds=60)
INSTRUCTION: Final = (
    "This conversation is a chat in writing on a website. Answer briefly, in plain text without formatting."
)
ANSWER: Final = ModelUsage("", input_tokens=6000, output_tokens=500)
"""Usage for which funds are held before an answer: that of a talkative minute of a call."""
NO_ANSWER: Final = "The agent cannot answer at the moment. Try again."


@dataclass(slots=True)
class _Turn:
    """A visitor's message that this process answers. `tool_uses` are lines of the transcript."""

    held: WidgetSession
    chat: Call
    agent: Agent
    redactor: Redactor
    history: list[Message]
    usage: list[ModelUsage] = field(default_factory=list)
    embeddings: list[ModelUsage] = field(default_factory=list)
    tool_uses: list[str] = field(default_factory=list)
    record: ServiceRecord = field(default_factory=ServiceRecord)


@dataclass(frozen=True, slots=True)
class _LoggedTools:
    """The agent's tools; each use becomes a redacted line of the transcript."""

    toolbox: Toolbox
    turn: _Turn

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self.toolbox.specs

    async def run(self, call: ToolCall) -> JsonObject:
        kept, for_model = await self.turn.redactor.search_and_redact_json(await self.toolbox.run(call))
        self.turn.tool_uses.append(json.dumps({"tool": call.name, "result": kept}))
        return for_model


@dataclass(frozen=True, slots=True)
class VisitorChats:
    database: Database
    providers: Providers
    agent_tools: AgentTools
    limiter: RateLimiter

    async def answer_message(
        self, widget: Widget, session_id: UUID | None, text: str, *, address: str
    ) -> tuple[UUID, str]:
        """Answer a message, in a new conversation if there is none, or if it is over. Return the conversation's id and
        the answer.

        Raises `NotFound` if visitors may not write, `Conflict` while an earlier message is being answered,
        `RateLimited` and `SpendLimitReached` at the widget's limits, and `Unavailable` if the agent, its model, or the
        organization's balance is.
        """
        if not widget.text_enabled:
            raise NotFound("The widget takes no messages.")
        async with self.database.write(widget.organization_id) as session:
            is_open = session_id is not None and (await _find_open(session, widget, session_id))[1] is not None
        if not is_open:
            await count_session(self.limiter, widget, address)
            session_id = None
        try:
            turn = await self._take(widget, session_id, text)
        except InsufficientBalance:
            logger.warning("a chat was not answered: the balance does not cover it", widget_id=str(widget.id))
            raise Unavailable(NO_ANSWER) from None
        try:
            async with asyncio.timeout(THINKING_SECONDS):
                said = await self._think(turn)
        except (ProviderError, TimeoutError) as error:
            logger.warning("a chat was not answered", call_id=str(turn.chat.id), error=str(error) or "took too long")
            await self._save(turn, "")
            raise Unavailable(NO_ANSWER) from error
        await self._save(turn, said)
        return turn.held.id, said

    async def list_entries(self, widget: Widget, session_id: UUID) -> list[dict[str, str]]:
        """List what the visitor and the agent have said, in a chat or a call that goes on. Raises `NotFound`."""
        async with self.database.write(widget.organization_id) as session:
            held, call = await _find_open(session, widget, session_id)
            if held is None or call is None:
                raise NotFound("The conversation is over.")
            lines = await calls.get_transcript(session, call.id)
        return [{"role": line.role, "content": line.content.value} for line in lines if line.role in ("user", "agent")]

    async def _take(self, widget: Widget, session_id: UUID | None, text: str) -> _Turn:
        async with self.database.write(widget.organization_id) as session:
            agent = await session.find(Agent, widget.agent_id)
            if agent is None or agent.status != "active":
                raise Unavailable("The agent is paused.")
            held, chat = await _find_open(session, widget, session_id) if session_id else (None, None)
            if held is None or chat is None:
                held = await add_session(session, widget)
                chat = await start_chat(session, held.id, agent.id, describe_widget(widget), widget_id=widget.id)
                held.call_id = chat.id
                await _add_lines(session, chat, [("agent", widget.greeting or build_greeting(agent))])
            elif held.answering_until is not None and held.answering_until > now():
                raise Conflict("The agent is still answering.")
            else:
                await require_spend(session, widget)
            prices = (await get_policy(session, widget.organization_id)).prices
            await ledger.hold_funds(session, chat.id, chat.cost_total + calculate_model_cost(prices, [ANSWER]))
            held.answering_until = now() + LEASE
            keep_open(chat)
            redactor = await open_redactor(session, agent)
            history = await list_chat_messages(session, chat.id)
            await redactor.search(text)
            redactor.hear_agent(history[-1].content if history else "")
            words = redactor.redact_utterance(text)
            await _add_lines(session, chat, [("user", words.kept)])
        return _Turn(held, chat, agent, redactor, [*history, Message("user", words.for_model)])

    async def _think(self, turn: _Turn) -> str:
        """Generate the agent's answer. Tools run on the way. Raises `ProviderError`."""
        agent, settings = turn.agent, turn.agent.settings
        knowledge = build_agent_knowledge(self.database, self.providers, agent, turn.embeddings)
        tools: list[Tool] = [
            *([SearchKnowledge(knowledge)] if knowledge else []),
            *await self.agent_tools.build_tools(agent),
        ]
        context = ToolContext(agent.organization_id, agent.id, turn.chat.id, VISITOR, VISITOR)
        toolbox = _LoggedTools(Toolbox(tools, context, disabled=settings.disabled_tools), turn)
        known = await retrieve_context(knowledge, turn.history[-1].content, seconds=UNHURRIED_SECONDS)
        prompt = fill_placeholders(settings.system_prompt, {})
        async with open_agent_model(self.providers, agent.organization_id, settings, turn.record) as model:
            responder = TextResponder(model, settings, toolbox, turn.usage)
            said = await responder.respond((prompt, INSTRUCTION), turn.history, known)
        await turn.redactor.search(said)
        return said

    async def _save(self, turn: _Turn, said: str) -> None:
        """Save the answer, empty if there is none, and its cost; end the claim."""
        async with self.database.write(turn.chat.organization_id) as session:
            chat = await lock_row(session, Call, turn.chat.id)
            if (held := await session.lock(WidgetSession, turn.held.id)) is not None:
                held.answering_until = None
            answer = [("agent", turn.redactor.redact(said).kept)] if said else []
            await _add_lines(session, chat, [*(("tool", use) for use in turn.tool_uses), *answer])
            prices = (await get_policy(session, chat.organization_id)).prices
            _add_cost(chat, "model", calculate_model_cost(prices, turn.usage))
            _add_cost(chat, "embedding", calculate_embedding_cost(prices, turn.embeddings))
            chat.served_by = {**chat.served_by, **turn.record.served}
            failures = [asdict(failure) for failure in turn.record.failures.values()]
            chat.provider_failures = [*chat.provider_failures, *failures]
            if not is_over(chat):
                keep_open(chat)


def build_greeting(agent: Agent) -> str:
    """Return the agent's greeting for a visitor: no name or other value is known for its placeholders."""
    return fill_placeholders(agent.settings.greeting_message, {})


def _add_cost(chat: Call, part: str, amount: Decimal) -> None:
    chat.cost_parts = {**chat.cost_parts, part: chat.cost_parts.get(part, 0.0) + float(amount)}
    chat.cost_total += amount


async def _find_open(
    session: WriteSession, widget: Widget, session_id: UUID
) -> tuple[WidgetSession | None, Call | None]:
    """Return a conversation of the widget and its call, locked, or None if it is over."""
    held = await session.lock(WidgetSession, session_id)
    if held is None or held.widget_id != widget.id or held.call_id is None:
        return None, None
    call = await session.lock(Call, held.call_id)
    return (None, None) if call is None or is_chat_over(call) else (held, call)


async def _add_lines(session: WriteSession, chat: Call, lines: Sequence[tuple[str, str]]) -> None:
    """Add lines to the end of a chat's transcript; empty ones are left out."""
    position = await count_transcript_lines(session, chat.id)
    elapsed = round((now() - (chat.started_at or chat.created_at)).total_seconds() * 1000)
    for role, content in lines:
        if content:
            line = TranscriptLine(
                organization_id=chat.organization_id,
                call_id=chat.id,
                position=position,
                role=role,
                content=Content(content),
                timestamp_ms=elapsed,
                ended_ms=elapsed,
            )
            await seal_content(session, line)
            session.add(line)
            position += 1


# Voice calls of a website's visitors, over the platform's WebSocket.
#
# A visitor's token is one of the carrier's browser tokens, whose identity names the widget and the conversation. It
# reaches the widget's agent, whatever is dialed with it, and only once. It also names the chat that the visitor has
# written before, if there is one: the call goes on with it.

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
    database: Database
    mint: BrowserTokenMint

    async def prepare_call(self, widget: Widget, chat_session_id: UUID | None) -> VisitorCall:
        """Return what the browser needs for one call, which goes on with the conversation's chat, if there is one.

        Raises `NotFound` if visitors may not talk, `InvalidState` if no carrier of the organization can do it, and
        `RateLimited` or `SpendLimitReached` at the widget's limits.
        """
        if not widget.voice_enabled:
            raise NotFound("The widget takes no calls.")
        session_id = new_id()
        named = [widget.id.hex, session_id.hex, *([chat_session_id.hex] if chat_session_id else [])]
        async with self.database.write(widget.organization_id) as session:
            await require_place(session, widget)
            carrier = await self.mint.find_talk_carrier(session, ())
            identity = "_".join((VISITOR, *named))
            minted = await self.mint.mint_token(session, carrier=carrier, identity=identity, platform="web")
        return VisitorCall(session_id, minted.connection["url"], minted.token, f"{AGENT}{widget.agent_id}")


async def answer_visitor_call(
    database: Database, router: InboundCallRouter, organization_id: UUID, carrier: str, browser: BrowserCall
) -> Instruction:
    """Decide what becomes of a visitor's call, record it, and return the instruction for the carrier."""
    identity = _IDENTITY.fullmatch(browser.identity)
    if identity is None:
        return RejectCall()
    widget_id, session_id = UUID(identity[1]), UUID(identity[2])
    async with database.write(organization_id) as session:
        widget = await session.find(Widget, widget_id)
        if widget is None or not (widget.enabled and widget.voice_enabled):
            return RejectCall()
        if await find_call_by_carrier_id(session, carrier, browser.carrier_call_id) is None:
            try:
                if await session.find(WidgetSession, session_id) is not None:
                    return RejectCall()
                await add_session(session, widget, session_id=session_id)
            except (RateLimited, SpendLimitReached) as refusal:
                logger.warning("a visitor's call was refused", widget_id=str(widget_id), reason=refusal.detail)
                return RejectCall("busy")
        number = await find_number_of_agent(session, widget.agent_id)
    incoming = IncomingCall(browser.carrier_call_id, VISITOR, number.phone_number if number else VISITOR)
    instruction = await router.answer_inbound_call(organization_id, carrier, incoming, agent_id=widget.agent_id)
    async with database.write(organization_id) as session:
        held = await session.lock(WidgetSession, session_id)
        call = await find_call_by_carrier_id(session, carrier, browser.carrier_call_id)
        if call is not None and held is not None and held.call_id is None:
            held.call_id, call.widget_id = call.id, widget_id
            await _add_metadata(session, call, describe_widget(widget))
        if call is not None and identity[3]:
            await _connect_chat(session, UUID(identity[3]), widget, call)
    return instruction


async def _connect_chat(session: WriteSession, session_id: UUID, widget: Widget, call: Call) -> None:
    """Connect a call with the chat that it goes on with, unless that is over."""
    held = await session.find(WidgetSession, session_id)
    if held is None or held.widget_id != widget.id:
        return
    chat = await session.find(Call, held.call_id)
    if chat is not None and chat.carrier == CHAT and not is_chat_over(chat):
        await _add_metadata(session, call, {CHAT_ID: str(chat.id)})


async def _add_metadata(session: WriteSession, call: Call, metadata: dict[str, str]) -> None:
    await open_content(session, call)
    call.call_metadata = Content({**call.call_metadata.value, **metadata})
    await seal_content(session, call)


def describe_widget(widget: Widget) -> dict[str, str]:
    """Return the metadata of the widget's conversations."""
    return {"widget_id": str(widget.id), "widget": widget.name}
