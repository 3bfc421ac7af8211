"""Agents answer text messages with their model, prompt, and tools, from the conversation so far.

An answer becomes due (`reply_due_at`), is claimed by one worker for a while (`answering_until`), and is saved in the
transaction that clears the due time: a crash before that leaves it to the next worker, a crash after it changes
nothing. Messages that arrive while the model runs are included before anything is sent.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Literal
from uuid import UUID

import structlog
from pydantic import JsonValue

from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.knowledge import Knowledge, SearchKnowledge
from switchboard.engine.conversation.sentences import SENTENCE_END
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.tools import OptOut
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.conversation.written import (
    Contribution,
    WrittenConversation,
    WrittenLine,
    WrittenPart,
    read_parts,
)
from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database, ReadSession, WriteSession, now
from switchboard.foundation.encryption.content import Content, open_content, seal_content
from switchboard.foundation.web.errors import (
    DestinationNotAllowed,
    InsufficientBalance,
    NotFound,
    OrganizationSuspended,
    OutboundPaused,
    RecipientOptedOut,
)
from switchboard.foundation.web.paging import lock_row
from switchboard.plugin_sdk import JsonObject, Message, ModelUsage, ProviderError, TextEncoding, ToolContext
from switchboard.resources.agents.colleagues import ClaimedAgent, WritingColleagues, claim_agents, read_contact
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.tools import AgentTools, build_agent_knowledge
from switchboard.resources.billing.ledger import calculate_writing_cost
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.phone_numbers.schedule import Schedule, is_open
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.keywords import obey_keyword, parse_keyword
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.queries import count_agent_answers, list_recent_messages
from switchboard.resources.sms.schemas import MAX_BODY_CHARACTERS

logger = structlog.get_logger()
QUIET_SECONDS = 1
"""Seconds that the contact must have been silent: several messages in a row get one answer."""
THINKING_SECONDS = 60.0
LEASE = timedelta(seconds=75)
RETRY_AFTER = timedelta(seconds=20)
MAX_ATTEMPTS = 3
HISTORY_MESSAGES = 50
HANDOFF_TIME = timedelta(hours=24)
"""Silence after which the number's agent has the conversation again."""
MAX_ANSWERS_AN_HOUR = 60
"""Maximum answers per hour, which stops two machines that answer each other."""
_REFUSALS = DestinationNotAllowed, InsufficientBalance, OrganizationSuspended, OutboundPaused, RecipientOptedOut
INSTRUCTION = "This conversation is by text message. Answer briefly, in plain text without formatting."


@dataclass(slots=True)
class _Claim:
    """A due answer that this worker has claimed. `until` identifies the claim; `seen` are the messages that the
    model has seen.

    `agents` may answer, the first one is the number's. `said` is the answer. `learned` are the variables to keep,
    redacted. `depth`: length of the automation chain that caused the contact's latest message.
    """

    conversation: SmsConversation
    number: PhoneNumber
    agents: Mapping[UUID, ClaimedAgent]
    parts: list[WrittenPart]
    variables: Variables
    learned: dict[str, JsonValue]
    until: datetime
    seen: set[UUID] = field(default_factory=set)
    words: list[WrittenLine] = field(default_factory=list)
    said: list[Contribution] = field(default_factory=list)
    usage: dict[UUID, list[ModelUsage]] = field(default_factory=dict)
    embeddings: list[ModelUsage] = field(default_factory=list)
    depth: int = 0

    async def record(self, contribution: Contribution) -> int:
        """Keep what an agent says or learns, and return its place, after all messages so far."""
        if contribution.learned is not None:
            name, known = contribution.learned
            self.learned[name] = {"value": known.value, "origin": known.origin}
        self.said.append(contribution)
        return (self.words[-1].place if self.words else 0) + 1


def schedule_answer(conversation: SmsConversation) -> None:
    """Schedule an answer to an inbound message; whether the agent answers is decided when it is due."""
    if conversation.status != "open":
        return
    conversation.reply_due_at, conversation.answer_attempts = now() + timedelta(seconds=QUIET_SECONDS), 0


async def answer_text(
    database: Database, providers: Providers, agent_tools: AgentTools, *, organization_id: UUID, conversation_id: UUID
) -> None:
    """Have the agent answer a conversation whose answer is due, unless another worker has claimed it."""
    claim = await _take(database, organization_id, conversation_id)
    if claim is None:
        return
    try:
        async with (
            asyncio.timeout(THINKING_SECONDS),
            WritingColleagues(
                providers, claim.agents, partial(_prepare, database, providers, agent_tools, claim)
            ) as agents,
        ):
            conversation = WrittenConversation(
                agents, claim.parts, claim.words, claim.record, (INSTRUCTION,), claim.variables, usage=claim.usage
            )
            begins = len(claim.parts) == 1 and all(line.message.role == "user" for line in claim.words)
            await conversation.answer(begins=begins)
            while not await _conclude(database, claim, conversation):
                logger.debug("messages arrived while the agent was answering", conversation_id=str(conversation_id))
                await conversation.answer()
    except (ProviderError, TimeoutError) as error:
        await _put_off(database, claim, error)


async def _prepare(
    database: Database, providers: Providers, agent_tools: AgentTools, claim: _Claim, agent: Agent
) -> tuple[Knowledge | None, Callable[[Sequence[Tool]], Toolbox]]:
    """Prepare an agent's knowledge and tools. Tools run on the way, and their effects stay even if the answer is
    discarded.
    """
    conversation = claim.conversation
    context = ToolContext(
        agent.organization_id,
        agent.id,
        None,
        conversation.contact_number,
        claim.number.phone_number,
        conversation_id=conversation.id,
        person_number=conversation.contact_number,
        variables=claim.variables.shown,
    )
    knowledge = build_agent_knowledge(database, providers, agent, claim.embeddings)
    tools: list[Tool] = [
        OptOut(partial(_opt_out, database, claim)),
        *([SearchKnowledge(knowledge)] if knowledge else []),
        *await agent_tools.build_tools(agent, depth=claim.depth),
    ]
    disabled = agent.settings.disabled_tools
    return knowledge, lambda handoffs: Toolbox([*tools, *handoffs], context, disabled=disabled)


async def _take(database: Database, organization_id: UUID, conversation_id: UUID) -> _Claim | None:
    async with database.write(organization_id) as session:
        conversation = await lock_row(session, SmsConversation, conversation_id)
        taken = conversation.answering_until is not None and conversation.answering_until > now()
        if conversation.reply_due_at is None or conversation.reply_due_at > now() or taken:
            return None
        given_up = conversation.answer_attempts >= MAX_ATTEMPTS
        answerer = None if given_up else await _answerer(session, conversation)
        if answerer is None:
            conversation.reply_due_at = conversation.answering_until = None
            await _wait_for_person(session, conversation)
            return None
        conversation.answer_attempts += 1
        conversation.answering_until = until = now() + LEASE
        number, agent = answerer
        await open_content(session, conversation)
        recent, agents = await _recent(session, conversation), await claim_agents(session, agent)
        stored, learned = conversation.parts.value, conversation.variables.value
        if _has_paused(recent):
            stored, learned = [], {}
        numbers = {"calling_number": conversation.contact_number, "called_number": number.phone_number}
        variables = Variables.from_texts(numbers, "carrier")
        variables.values |= (await read_contact(session, agents.values(), conversation.contact_number)).values
        for name, known in learned.items():
            variables.set(name, known["value"], known["origin"])
        parts = read_parts(stored, agent.id, agents)
        claim = _Claim(conversation, number, agents, parts, variables, dict(learned), until)
        _tell(claim, recent)
        return claim


def _has_paused(messages: Sequence[SmsMessage]) -> bool:
    """Return whether nobody wrote for long before the contact's last messages."""
    moments = [message.created_at for message in messages]
    last_answer = max((place for place, message in enumerate(messages) if message.direction == "outbound"), default=-1)
    return any(later - earlier >= HANDOFF_TIME for earlier, later in pairwise(moments[max(last_answer, 0) :]))


async def _wait_for_person(session: WriteSession, conversation: SmsConversation) -> None:
    """Record that no agent answers the contact's message, if a person can."""
    if sms.can_be_called(conversation) and not await sms.has_opted_out(session, conversation):
        conversation.waiting_since = conversation.waiting_since or conversation.last_inbound_at


async def _answerer(session: ReadSession, conversation: SmsConversation) -> tuple[PhoneNumber, Agent] | None:
    """Return the agent to answer: the number's agent, if it is active, the number is open for text messages, the
    contact can receive them, no member has the conversation, and the organization may text the contact.
    """
    if conversation.assigned_to is not None:
        return None
    try:
        number = await numbers.get_phone_number(session, conversation.phone_number_id)
    except NotFound:
        return None
    agent = await session.find(Agent, number.inbound_agent_id)
    schedule = Schedule.model_validate(number.sms_schedule) if number.sms_schedule else None
    if agent is None or agent.status != "active" or not is_open(schedule, now()) or not sms.can_be_called(conversation):
        return None
    if not number.sms_active or await sms.find_text_refusal(session, conversation, is_accepted=True) is not None:
        return None
    if await count_agent_answers(session, conversation.id, since=now() - timedelta(hours=1)) >= MAX_ANSWERS_AN_HOUR:
        logger.warning("the agent has reached its limit of answers per hour", conversation_id=str(conversation.id))
        return None
    return number, agent


async def _recent(session: ReadSession, conversation: SmsConversation) -> list[SmsMessage]:
    found = await list_recent_messages(session, conversation.id, most=HISTORY_MESSAGES)
    await open_content(session, *found)
    return [
        message
        for message in found
        if message.direction == "outbound" or parse_keyword(message.body.value) not in ("stop", "help")
    ]


def _tell(claim: _Claim, messages: Sequence[SmsMessage]) -> None:
    """Add messages to the conversation."""
    for message in messages:
        claim.seen.add(message.id)
        role: Literal["user", "assistant"] = "user" if message.direction == "inbound" else "assistant"
        if role == "user":
            claim.depth = message.cause_depth
        content = (
            "\n".join([message.body.value, *(f"(sent a file: {url})" for url in message.media_urls.value)]).strip()
            or "(an empty message)"
        )
        claim.words.append(WrittenLine(int(message.created_at.timestamp() * 1_000_000), Message(role, content)))


async def _opt_out(database: Database, claim: _Claim) -> None:
    """Handle an opt-out in other words than STOP: the platform confirms, and the agent's answer is dropped."""
    async with database.write(claim.conversation.organization_id) as session:
        conversation = await lock_row(session, SmsConversation, claim.conversation.id)
        await obey_keyword(session, conversation, "stop", answered=False)


async def _conclude(database: Database, claim: _Claim, answered: WrittenConversation) -> bool:
    """Save the answer and clear the due time; return False if messages have arrived that must be answered too."""
    async with database.write(claim.conversation.organization_id) as session:
        conversation = await lock_row(session, SmsConversation, claim.conversation.id)
        if conversation.answering_until != claim.until:
            return True
        fresh = [
            message
            for message in await _recent(session, conversation)
            if message.direction == "inbound" and message.id not in claim.seen
        ]
        if fresh:
            answered.forget_after(len(claim.seen))
            claim.said.clear()
            _tell(claim, fresh)
            return False
        conversation.reply_due_at = conversation.answering_until = None
        conversation.answer_attempts = 0
        text = "\n".join(said.text for said in claim.said if said.is_said)
        if text:
            session.cause_depth = claim.depth
            try:
                usage = [one for used in claim.usage.values() for one in used]
                cost = await calculate_writing_cost(session, usage, claim.embeddings)
                answer = sms.MessageContent(shorten_answer(text, sms.find_encoding(session, claim.number.carrier)))
                message = await sms.save_outbound_message(
                    session, conversation, answer, author="agent", agent_id=answered.parts[-1].agent_id, cost=cost
                )
                message.interventions = _list_interventions(claim.said)
            except _REFUSALS as error:
                logger.warning("message not answered", conversation_id=str(conversation.id), reason=error.detail)
        if answered.guardrail is not None and answered.guardrail.action == "person":
            await _wait_for_person(session, conversation)
        parts = answered.parts if len(answered.parts) > 1 or answered.parts[0].succeeded else []
        conversation.parts = Content([part.model_dump(mode="json") for part in parts])
        conversation.variables = Content(dict(claim.learned))
        await seal_content(session, conversation)
        return True


def _list_interventions(said: Sequence[Contribution]) -> list[JsonObject]:
    """Return what agents were kept from writing, and the guardrails that the contact's words met."""
    found = (contribution.build_intervention(0) for contribution in said)
    return [{"rule": each.rule, "name": each.name, "action": each.action} for each in found if each is not None]


async def _put_off(database: Database, claim: _Claim, error: Exception) -> None:
    async with database.write(claim.conversation.organization_id) as session:
        conversation = await lock_row(session, SmsConversation, claim.conversation.id)
        if conversation.answering_until != claim.until:
            return
        given_up = conversation.answer_attempts >= MAX_ATTEMPTS
        conversation.answering_until = None
        conversation.reply_due_at = None if given_up else now() + RETRY_AFTER
        if given_up:
            await _wait_for_person(session, conversation)
    logger.warning(
        "message not answered",
        conversation_id=str(claim.conversation.id),
        given_up=given_up,
        error=str(error) or "took too long",
    )


def shorten_answer(text: str, encoding: TextEncoding) -> str:
    """Shorten an answer to what the carrier sends: at whole sentences, or at words if the first is too long."""
    if _fits(text, encoding):
        return text
    start = text[: MAX_BODY_CHARACTERS + 1]
    whole = (start[: match.end()].rstrip() for match in reversed(list(SENTENCE_END.finditer(start))))
    sentences = next((part for part in whole if _fits(part, encoding)), "")
    if sentences:
        return sentences
    part = text[: MAX_BODY_CHARACTERS - 1]
    while True:
        part = part[:-1].rsplit(" ", 1)[0]
        if _fits(f"{part}…", encoding):
            return f"{part}…"


def _fits(text: str, encoding: TextEncoding) -> bool:
    return len(text) <= MAX_BODY_CHARACTERS and encoding.can_send(encoding.count_segments(text))
