"""The agent's answers without a worker: one per pause, once despite crashes, and only where one is due."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlmodel import col, update
from switchboard.plugin_sdk import (
    AgentTool,
    ChatEvent,
    ChatRequest,
    JsonObject,
    LLMProvider,
    ProviderError,
    ProviderSettings,
    TextMessageReceived,
    ToolCall,
    ToolContext,
    ToolParameters,
)
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms import auto_reply, inbound
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.keywords import ANSWERS
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, fresh_number
from tests.fixtures.conversation import Model

CONTACT = "+15550100001"
CLOSED = {"slots": [{"days": ["mon"], "start": "00:00", "end": "00:01"}]}
PAST = timedelta(seconds=5)


class Line:
    """A phone number with its agent, a contact, and a model that answers as the test says."""

    def __init__(self, runtime: Runtime, caller: Caller, number: JsonObject, model: Model) -> None:
        self.runtime, self.caller, self.model = runtime, caller, model
        self.number, self.number_id, self.agent_id = (
            str(number["phone_number"]),
            str(number["id"]),
            str(number["inbound_agent_id"]),
        )

    async def text(self, body: str, *, contact: str = CONTACT) -> None:
        told = TextMessageReceived(f"in-{uuid4()}", contact, self.number, body)
        await inbound.receive_message(self.runtime.database, self.caller.organization_id, "loopback", told)

    async def conversation(self) -> SmsConversation:
        async with self.runtime.database.tenant(self.caller.organization_id) as session:
            return (await session.exec(sms.list_conversations(session))).one()

    async def set(self, **values: object) -> None:
        async with self.runtime.database.tenant(self.caller.organization_id) as session:
            await session.exec(update(SmsConversation).values(**values))

    async def answer(self) -> None:
        """Make the answer due and run a worker's step."""
        conversation = await self.conversation()
        if conversation.reply_due_at is not None:
            await self.set(reply_due_at=datetime.now(UTC) - PAST)
        await auto_reply.answer_conversation(self.runtime, self.caller.organization_id, conversation.id)

    async def sent(self) -> list[str]:
        """Return the outbound messages, oldest first."""
        async with self.runtime.database.tenant(self.caller.organization_id) as session:
            rows = (
                sms.list_messages(session)
                .where(col(SmsMessage.direction) == "outbound")
                .order_by(col(SmsMessage.created_at))
            )
            return [message.body for message in (await session.exec(rows)).all()]

    def get_model_messages(self, request: int = -1) -> list[tuple[str, str]]:
        """Return the messages of a model request without the system's."""
        return [
            (message.role, message.content)
            for message in self.model.asked[request].messages
            if message.role != "system"
        ]


@pytest_asyncio.fixture
async def line(runtime: Runtime, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> Line:
    model = Model()

    @asynccontextmanager
    async def agent_model(*_: object) -> AsyncIterator[LLMProvider[ProviderSettings]]:
        yield model

    monkeypatch.setattr(auto_reply, "open_agent_model", agent_model)
    agent = (await caller.post("/v1/agents", {"name": "Agent", "system_prompt": "Be {{mood}}kind."})).json["id"]
    number = await caller.post("/v1/phone-numbers", {"phone_number": fresh_number(), "inbound_agent_id": agent})
    return Line(runtime, caller, number.json, model)


async def test_the_model_is_asked_as_in_a_call_with_the_conversation_so_far(line: Line) -> None:
    line.model.answers = ["First answer.", "Second answer."]
    await line.text("One")
    await line.answer()
    await line.text("Two")
    await line.answer()
    assert await line.sent() == ["First answer.", "Second answer."]
    assert [message.content for message in line.model.asked[0].messages if message.role == "system"] == [
        "Be kind.",
        auto_reply.INSTRUCTION,
    ]
    assert line.get_model_messages() == [("user", "One"), ("assistant", "First answer."), ("user", "Two")]


async def test_texts_in_quick_succession_get_one_answer_that_sees_all(line: Line) -> None:
    for body in ("One", "Two", "Three"):
        await line.text(body)
    await line.answer()
    assert line.get_model_messages() == [("user", "One\nTwo\nThree")]
    await line.answer()
    assert await line.sent() == ["Yes."]


async def test_a_text_that_comes_while_the_agent_thinks_is_thought_about_first(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.model.answers = ["To the first alone.", "To both."]
    hurried: list[Callable[[], Awaitable[None]]] = [lambda: line.text("Two")]
    chat = line.model.chat

    async def interrupted(request: ChatRequest) -> AsyncIterator[ChatEvent]:
        while hurried:
            await hurried.pop()()
        async for event in chat(request):
            yield event

    monkeypatch.setattr(line.model, "chat", interrupted)
    await line.text("One")
    await line.answer()
    assert await line.sent() == ["To both."]
    assert line.get_model_messages() == [("user", "One\nTwo")]
    assert (await line.conversation()).reply_due_at is None


async def test_ten_workers_answer_once(line: Line) -> None:
    await line.text("Hello")
    await line.set(reply_due_at=datetime.now(UTC) - PAST)
    conversation = await line.conversation()
    await asyncio.gather(
        *(auto_reply.answer_conversation(line.runtime, line.caller.organization_id, conversation.id) for _ in range(10))
    )
    assert await line.sent() == ["Yes."]
    assert len(line.model.asked) == 1


async def test_who_answers_too_late_answers_nothing(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that hung for longer than its lease meets the one that took over."""
    chat = line.model.chat

    async def slow(request: ChatRequest) -> AsyncIterator[ChatEvent]:
        monkeypatch.setattr(line.model, "chat", chat)
        await line.set(answering_until=datetime.now(UTC) - PAST)
        await line.answer()
        async for event in chat(request):
            yield event

    monkeypatch.setattr(line.model, "chat", slow)
    await line.text("Hello")
    await line.answer()
    assert await line.sent() == ["Yes."]


async def test_a_crash_while_thinking_leaves_the_answer_to_the_next_worker(line: Line) -> None:
    await line.text("Hello")
    await line.set(answering_until=datetime.now(UTC) + PAST)
    await line.answer()
    assert await line.sent() == []
    await line.set(answering_until=datetime.now(UTC) - PAST)
    await line.answer()
    assert await line.sent() == ["Yes."]


async def test_a_model_that_fails_is_tried_again_and_then_given_up(line: Line) -> None:
    line.model.answers = [ProviderError("overloaded"), "Better now."]
    await line.text("Hello")
    await line.answer()
    assert await line.sent() == []
    await line.answer()
    assert await line.sent() == ["Better now."]
    line.model.answers = [ProviderError("overloaded")] * 3
    await line.text("Hello again")
    for _ in range(3):
        await line.answer()
    assert (await line.conversation()).reply_due_at is None
    assert await line.sent() == ["Better now."]


async def test_tools_of_plugins_are_offered_and_told_which_conversation_it_is(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[ToolContext] = []

    class Tables(AgentTool[ToolParameters]):
        name = "free_tables"
        description = "How many tables are free."

        async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
            contexts.append(context)
            return {"free": 3}

    monkeypatch.setattr(Registry, "tools", [Tables])
    line.model.answers = [ToolCall("1", "free_tables", {}), "Three tables are free."]
    await line.text("Is there a table?")
    await line.answer()
    conversation = await line.conversation()
    assert contexts == [
        ToolContext(
            line.caller.organization_id,
            UUID(line.agent_id),
            None,
            CONTACT,
            line.number,
            conversation_id=conversation.id,
        )
    ]
    assert line.get_model_messages()[-1] == ("tool", '{"free": 3}')
    assert await line.sent() == ["Three tables are free."]


async def test_whoever_says_stop_in_other_words_is_left_alone(line: Line) -> None:
    line.model.answers = [ToolCall("1", "opt_out", {}), "I will not write again."]
    await line.text("Please do not write to me any more")
    await line.answer()
    (confirmation,) = await line.sent()
    assert confirmation.endswith(ANSWERS["stop"])
    assert (await line.conversation()).status == "closed"


@pytest.mark.parametrize("why", ["paused", "no agent", "closed hours", "a short code", "stopped", "released"])
async def test_no_answer(line: Line, why: str) -> None:
    contact = "72404" if why == "a short code" else CONTACT
    await line.text("Hello", contact=contact)
    if why == "paused":
        await line.caller.send("PUT", f"/v1/agents/{line.agent_id}", {"status": "paused"})
    elif why == "no agent":
        await line.caller.send("DELETE", f"/v1/agents/{line.agent_id}")
    elif why == "closed hours":
        await line.caller.send("PUT", f"/v1/phone-numbers/{line.number_id}", {"sms_schedule": CLOSED})
    elif why == "stopped":
        await line.set(status="closed")
    elif why == "released":
        await release(line)
    await line.answer()
    assert await line.sent() == []
    assert (await line.conversation()).reply_due_at is None
    assert line.model.asked == []


async def release(line: Line) -> None:
    async with line.runtime.database.tenant(line.caller.organization_id) as session:
        await session.exec(update(PhoneNumber).values(status="released"))


async def test_two_machines_that_answer_each_other_stop(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_reply, "MAX_ANSWERS_AN_HOUR", 2)
    for _ in range(4):
        await line.text("And you?")
        await line.answer()
    assert await line.sent() == ["Yes.", "Yes."]


async def test_keywords_are_not_for_the_agent(line: Line) -> None:
    await line.text("HELP")
    assert (await line.conversation()).reply_due_at is None
    await line.text("Hello")
    await line.answer()
    assert line.get_model_messages() == [("user", "Hello")]
