"""Chats and calls of a website's visitors. In a chat the agent answers each message with its model, prompt,
tools, and knowledge.

A message claims the conversation for a while (`answering_until`), the model runs without a transaction, and the answer,
its cost, and the end of the claim are saved together. A process that dies leaves the message without an answer.
"""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason, HandoffRecord, Intervention, Tool, VariableRecord
from switchboard.engine.conversation.knowledge import Knowledge, SearchKnowledge
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.conversation.written import (
    Contribution,
    WrittenConversation,
    WrittenLine,
    WrittenPart,
    read_parts,
)
from switchboard.engine.providers.health import ServiceRecord
from switchboard.engine.providers.instances import Providers
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
from switchboard.resources.agents.colleagues import ClaimedAgent, WritingColleagues, claim_agents
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import AgentTools, build_agent_knowledge
from switchboard.resources.billing import ledger
from switchboard.resources.billing.ledger import calculate_embedding_cost, calculate_model_cost
from switchboard.resources.browser_calls.service import BrowserTokenMint
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.browser import AGENT
from switchboard.resources.calls.chats import (
    CHAT_ID,
    VISITOR,
    finish_chat,
    is_chat_over,
    keep_open,
    list_chat_messages,
    measure_chat,
    start_chat,
)
from switchboard.resources.calls.inbound import InboundCallRouter
from switchboard.resources.calls.models import CHAT, Call, TranscriptLine
from switchboard.resources.calls.queries import find_call_by_carrier_id
from switchboard.resources.calls.states import (
    build_variables,
    is_over,
    keep_variables,
    record_handoff,
    record_interventions,
)
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


class _Line(NamedTuple):
    role: str
    content: str
    agent_id: UUID | None = None


@dataclass(slots=True)
class _Turn:
    """A visitor's message that this process answers, in a chat that `begins` with it or goes on.

    `agents` may answer, the first one is the widget's. The chat `ends` with this answer if a guardrail says so. `lines`
    are new ones of the transcript, from the place `end` on, as role, text, and agent. `handoffs`, `learned` variables,
    and `interventions` are new ones.
    """

    held: WidgetSession
    chat: Call
    begins: bool
    agents: Mapping[UUID, ClaimedAgent]
    parts: list[WrittenPart]
    words: list[WrittenLine]
    variables: Variables
    end: int
    lines: list[_Line] = field(default_factory=list)
    handoffs: list[HandoffRecord] = field(default_factory=list)
    learned: list[VariableRecord] = field(default_factory=list)
    interventions: list[Intervention] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    ends: bool = False
    usage: dict[UUID, list[ModelUsage]] = field(default_factory=dict)
    embeddings: list[ModelUsage] = field(default_factory=list)
    served: ServiceRecord = field(default_factory=ServiceRecord)

    async def record(self, contribution: Contribution) -> int:
        """Keep what an agent contributes, redacted, and return its place in the transcript."""
        agent, old = contribution.agent, contribution.old
        if contribution.learned is not None:
            name, variable = contribution.learned
            self.lines.append(_Line("system", contribution.text))
            at = measure_chat(self.chat)
            self.learned.append(VariableRecord(name, variable.value, variable.origin, agent.id, at))
        elif (intervention := contribution.build_intervention(measure_chat(self.chat))) is not None:
            self.lines.append(_Line("system", contribution.text))
            self.interventions.append(intervention)
        elif contribution.handoff is None or old is None:
            self.said.append(contribution.text)
            kept = (await agent.redactor.search_and_redact(contribution.text)).kept
            self.lines.append(_Line("agent", kept, agent.id))
        else:
            self.lines.append(_Line("system", contribution.text))
            elapsed = measure_chat(self.chat)
            self.handoffs.append(
                HandoffRecord(old.id, agent.id, agent.version, contribution.handoff, contribution.forced, elapsed)
            )
        return self.end + len(self.lines) - 1


@dataclass(frozen=True, slots=True)
class _LoggedTools:
    """An agent's tools; each use becomes a redacted line of the transcript."""

    toolbox: Toolbox
    turn: _Turn
    claimed: ClaimedAgent

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self.toolbox.specs

    async def run(self, call: ToolCall) -> JsonObject:
        kept, for_model = await self.claimed.redactor.search_and_redact_json(await self.toolbox.run(call))
        line = json.dumps({"tool": call.name, "result": kept})
        self.turn.lines.append(_Line("tool", line, self.claimed.agent.id))
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
                await self._think(turn)
        except (ProviderError, TimeoutError) as error:
            logger.warning("a chat was not answered", call_id=str(turn.chat.id), error=str(error) or "took too long")
            await self._save(turn, is_answered=False)
            raise Unavailable(NO_ANSWER) from error
        await self._save(turn, is_answered=True)
        return turn.held.id, "\n".join(turn.said)

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
            begins = held is None or chat is None
            if held is None or chat is None:
                held = await add_session(session, widget)
                chat = await start_chat(session, held.id, agent.id, describe_widget(widget), widget_id=widget.id)
                held.call_id = chat.id
                await _add_lines(session, chat, [_Line("agent", widget.greeting or build_greeting(agent), agent.id)])
            elif held.answering_until is not None and held.answering_until > now():
                raise Conflict("The agent is still answering.")
            else:
                await require_spend(session, widget)
            prices = (await get_policy(session, widget.organization_id)).prices
            await ledger.hold_funds(session, chat.id, chat.cost_total + calculate_model_cost(prices, [ANSWER]))
            held.answering_until = now() + LEASE
            keep_open(chat)
            agents = await claim_agents(session, agent)
            await open_content(session, chat)
            parts = read_parts(chat.parts.value, agent.id, agents)
            redactor = agents[parts[-1].agent_id].redactor
            messages = await list_chat_messages(session, chat.id)
            await redactor.search(text)
            redactor.hear_agent(messages[-1].message.content if messages else "")
            said = redactor.redact_utterance(text)
            await _add_lines(session, chat, [_Line("user", said.kept)])
            end = await count_transcript_lines(session, chat.id)
        words = [*messages, WrittenLine(end - 1, Message("user", said.for_model))]
        return _Turn(held, chat, begins, agents, parts, words, build_variables(chat, Variables()), end)

    async def _think(self, turn: _Turn) -> None:
        """Generate the answer. Tools run on the way. Raises `ProviderError`."""
        async with WritingColleagues(self.providers, turn.agents, partial(self._prepare, turn), turn.served) as agents:
            conversation = WrittenConversation(
                agents, turn.parts, turn.words, turn.record, (INSTRUCTION,), turn.variables, usage=turn.usage
            )
            await conversation.answer(begins=turn.begins)
            turn.ends = conversation.guardrail is not None and conversation.guardrail.action == "end"

    async def _prepare(
        self, turn: _Turn, agent: Agent
    ) -> tuple[Knowledge | None, Callable[[Sequence[Tool]], _LoggedTools]]:
        knowledge = build_agent_knowledge(self.database, self.providers, agent, turn.embeddings)
        tools: list[Tool] = [
            *([SearchKnowledge(knowledge)] if knowledge else []),
            *await self.agent_tools.build_tools(agent),
        ]
        context = ToolContext(
            agent.organization_id, agent.id, turn.chat.id, VISITOR, VISITOR, variables=turn.variables.shown
        )
        claimed, disabled = turn.agents[agent.id], agent.settings.disabled_tools
        return knowledge, lambda handoffs: _LoggedTools(
            Toolbox([*tools, *handoffs], context, disabled=disabled), turn, claimed
        )

    async def _save(self, turn: _Turn, *, is_answered: bool) -> None:
        """Save what was said and what it cost, or only the uses of tools; end the claim."""
        async with self.database.write(turn.chat.organization_id) as session:
            chat = await lock_row(session, Call, turn.chat.id)
            held = await session.lock(WidgetSession, turn.held.id)
            lines = [line for line in turn.lines if is_answered or line.role == "tool"]
            await _add_lines(session, chat, lines)
            await _add_costs(session, chat, turn)
            if is_answered:
                await keep_variables(session, chat, turn.learned)
                for handoff in turn.handoffs:
                    await record_handoff(session, chat, handoff)
                record_interventions(chat, turn.interventions)
                if (turn.handoffs or any(part.succeeded for part in turn.parts)) and not is_over(chat):
                    chat.parts = Content([part.model_dump(mode="json") for part in turn.parts])
                    await seal_content(session, chat)
            if held is not None:
                held.answering_until = None
            chat.served_by = {**chat.served_by, **turn.served.served}
            failures = [asdict(failure) for failure in turn.served.failures.values()]
            chat.provider_failures = [*chat.provider_failures, *failures]
            if turn.ends and not is_over(chat):
                await finish_chat(session, chat, EndedReason.AGENT_HUNG_UP)
            elif not is_over(chat):
                keep_open(chat)


async def _add_costs(session: WriteSession, chat: Call, turn: _Turn) -> None:
    """Add the costs of an answer to those of a chat, and to those of each agent once there are several."""
    prices = (await get_policy(session, chat.organization_id)).prices
    before, first, last = chat.cost_parts, chat.agent_id, turn.parts[-1].agent_id
    _add_cost(chat, "embedding", calculate_embedding_cost(prices, turn.embeddings))
    shares = dict(chat.agent_costs or ({str(first): dict(before)} if turn.handoffs else {}))
    for agent_id, usage in turn.usage.items():
        cost = calculate_model_cost(prices, usage)
        _add_cost(chat, "model", cost)
        if shares:
            share = shares.setdefault(str(agent_id), {})
            shares[str(agent_id)] = {**share, "model": share.get("model", 0.0) + float(cost)}
    if shares:
        share = shares.setdefault(str(last), {})
        embedding = calculate_embedding_cost(prices, turn.embeddings)
        shares[str(last)] = {**share, "embedding": share.get("embedding", 0.0) + float(embedding)}
        chat.agent_costs = shares


def build_greeting(agent: Agent) -> str:
    """Return the agent's greeting for a visitor: no name or other value is known for its placeholders."""
    return Variables().fill(agent.settings.greeting_message)


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


async def _add_lines(session: WriteSession, chat: Call, lines: Sequence[_Line]) -> None:
    """Add lines to the end of a chat's transcript; empty ones are left out."""
    position = await count_transcript_lines(session, chat.id)
    elapsed = measure_chat(chat)
    for role, content, agent_id in lines:
        if content:
            line = TranscriptLine(
                organization_id=chat.organization_id,
                call_id=chat.id,
                position=position,
                role=role,
                content=Content(content),
                timestamp_ms=elapsed,
                ended_ms=elapsed,
                agent_id=agent_id,
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
