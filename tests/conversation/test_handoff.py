"""Hand-offs between the agents of a call, with scripted models and transcribers of their own."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue
from switchboard.engine.conversation.agent_settings import AgentSettings, Handoff, HandoffCondition
from switchboard.engine.conversation.call import CallAgent, CallResult, EndedReason, LiveCall, Supervisor
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.handoff_tools import MOST_HANDOFFS, name_tools
from switchboard.engine.conversation.response_generator import APOLOGY
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import (
    AgentTool,
    JsonObject,
    KeypadEntry,
    ProviderError,
    ToolCall,
    ToolContext,
    ToolParameters,
)

from tests.conversation.test_waiting import Queue
from tests.fixtures.conversation import (
    Log,
    Model,
    QuietFeed,
    Socket,
    Speech,
    Transcriber,
    create_call,
    list_transcript,
    synthesize_caller,
)

pytestmark = pytest.mark.usefixtures("task_check")
SPEECH = synthesize_caller("I have a question about my invoice")
TO_BILLING = ToolCall("1", "hand_off_to_billing", {"reason": "The caller disputes an invoice."})


@dataclass
class Office:
    """The agents to which a call may go. Those of `closed` cannot be opened."""

    agents: dict[UUID, CallAgent] = field(default_factory=dict)
    closed: set[UUID] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)

    @property
    def names(self) -> Mapping[UUID, str]:
        return {agent_id: agent.name for agent_id, agent in self.agents.items()}

    async def open(self, agent_id: UUID) -> CallAgent:
        if agent_id in self.closed:
            raise ProviderError("no voice today")
        self.opened.append(self.agents[agent_id].name)
        return self.agents[agent_id]

    def add(self, name: str, model: Model, transcriber: Transcriber, **settings: object) -> UUID:
        """Add an agent and return its id."""
        agent = AgentSettings().model_copy(update={"system_prompt": f"You are {name}.", **settings})
        agent_id = uuid4()
        self.agents[agent_id] = CallAgent(agent_id, name, agent, transcriber, Speech(), model)
        return agent_id


def start_call(office: Office, model: Model, *said: str, handoffs: list[Handoff], **settings: object) -> LiveCall:
    """A call that begins with the reception."""
    live = create_call(model, Transcriber(*said))
    settings = {"handoffs": handoffs, **settings}
    live.agent = replace(live.agent, name="Reception", settings=live.agent.settings.model_copy(update=settings))
    office.agents[live.agent.id] = live.agent
    live.colleagues = office
    return live


def to_agent(agent_id: UUID, **fields: object) -> Handoff:
    return Handoff.model_validate({"agent_id": str(agent_id), "description": "Invoices.", **fields})


def build_condition(name: str, value: JsonValue) -> HandoffCondition:
    return HandoffCondition(field=name, operator="eq", value=value)


async def run(engine: CallEngine, live: LiveCall, socket: Socket) -> CallResult:
    async with asyncio.timeout(120):
        return await engine.run_call(live, socket)


def list_context(model: Model, request: int = 0) -> list[tuple[str, str]]:
    """The messages of a request, without the prompt."""
    return [(message.role, message.content) for message in model.requests[request].messages[1:]]


async def test_the_next_agent_goes_on_with_what_the_caller_has_heard(engine: CallEngine) -> None:
    office, socket = Office(), Socket()
    billing = Model("Which invoice is it?", ("Goodbye.", ToolCall("2", "end_call", {})), "")
    transcriber = Transcriber("number twelve")
    billing_id = office.add("Billing", billing, transcriber, greeting_message="Billing, good day.")
    reception = Model(("I will connect you with billing, one moment please.", TO_BILLING))
    live = start_call(office, reception, "my invoice", handoffs=[to_agent(billing_id)], greeting_message="Hello.")
    first = live.agent
    running = asyncio.create_task(run(engine, live, socket))
    await asyncio.sleep(2)
    await socket.say(SPEECH)
    await asyncio.sleep(8)
    await socket.say(synthesize_caller("number twelve"))
    result = await running
    assert result.ended_reason is EndedReason.AGENT_HUNG_UP
    assert list_transcript(result) == [
        ("agent", "Hello."),
        ("user", "my invoice"),
        ("tool", '{"tool": "hand_off_to_billing", "result": {"handed_over": true}}'),
        ("agent", "I will connect you with billing, one moment please."),
        ("system", "Reception handed the conversation over to Billing: The caller disputes an invoice."),
        ("agent", "Which invoice is it?"),
        ("user", "number twelve"),
        ("tool", '{"tool": "end_call", "result": {"ended": true}}'),
        ("agent", "Goodbye."),
    ]
    speakers = [entry.agent_id for entry in result.transcript if entry.role in ("agent", "tool")]
    assert speakers == [first.id, first.id, first.id, billing_id, billing_id, billing_id]
    *heard, (role, note) = list_context(billing)
    assert heard == [
        ("assistant", "Hello."),
        ("user", "my invoice"),
        ("assistant", "I will connect you with billing, one moment please."),
    ]
    assert (role, "do not greet again" in note, "The caller disputes an invoice." in note) == ("system", True, True)
    assert len(billing.requests) == 3, "the prepared answer was used"
    assert len(reception.requests) == 1, "the first agent says nothing more"
    assert transcriber.heard > 0
    assert [used.text_to_speech_characters > 0 for used in result.agent_usage.values()] == [True, True]
    assert [used.speech_to_text_seconds > 0 for used in result.agent_usage.values()] == [True, True]
    log = live.log
    assert isinstance(log, Log)
    (record,) = log.handoffs
    assert (record.from_agent_id, record.to_agent_id, record.mode, record.forced) == (
        first.id,
        billing_id,
        "replace",
        False,
    )


async def test_the_answer_is_prepared_while_the_first_agent_is_heard(engine: CallEngine) -> None:
    office, socket, billing = Office(), Socket(), Model("Which invoice is it?")
    long = "I will connect you with my colleague in billing, who can see all of your invoices, one moment please."
    reception = Model((long, TO_BILLING))
    live = start_call(office, reception, "hi", handoffs=[to_agent(office.add("Billing", billing, Transcriber()))])
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(14)
    socket.hang_up()
    result = await running
    last, first = [entry for entry in result.transcript if entry.role == "agent"]
    ended_at = socket.opened_at + last.ended_ms / 1000
    assert billing.requested_at[0] < ended_at - 1
    assert len(billing.requested_at) == 1
    assert first.timestamp_ms - last.ended_ms < 300
    asked, handed = result.latencies
    assert (asked.endpoint_ms is None, handed.endpoint_ms) == (False, None)
    assert handed.first_frame_ms is not None
    assert handed.first_frame_ms < 300, "from the end of the first agent's words"


@pytest.mark.parametrize("context", ["everything", "summary"])
async def test_a_caller_who_interrupts_the_last_words_is_answered_by_the_next_agent(
    engine: CallEngine, context: str
) -> None:
    office, socket, billing = Office(), Socket(), Model("An answer to nobody.", "Certainly, number twelve.")
    reception = Model(
        ("I will connect you with billing, who knows all about it, and they will help you.", TO_BILLING), "Ada asks."
    )
    handoffs = [to_agent(office.add("Billing", billing, Transcriber("twelve")), context=context)]
    live = start_call(office, reception, "my invoice", "wait it is number twelve", handoffs=handoffs)
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await socket.spoke.wait()
    await asyncio.sleep(1)
    await socket.say(synthesize_caller("wait it is number twelve of this year"))
    await asyncio.sleep(6)
    socket.hang_up()
    result = await running
    assert list_context(billing, -1)[-1] == ("user", "wait it is number twelve")
    assert list_transcript(result)[-1] == ("agent", "Certainly, number twelve.")
    assert ("Ada asks." in str(billing.requests[-1].messages)) == (context == "summary")
    assert len(reception.requests) == (2 if context == "summary" else 1)


async def test_a_supervisor_during_the_last_words_hands_the_call_back_to_the_next_agent(engine: CallEngine) -> None:
    office, socket, billing = Office(), Socket(), Model("An answer to nobody.", "Billing goes on.")
    reception = Model(("I will connect you with billing, who knows all about it, and they will help you.", TO_BILLING))
    handoffs = [to_agent(office.add("Billing", billing, Transcriber()))]
    live, monitor = start_call(office, reception, "my invoice", handoffs=handoffs), uuid4()
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await socket.spoke.wait()
    session = engine.find_session(live.call_id)
    assert session is not None
    session.supervision.attach(monitor, Supervisor(uuid4(), "Ada"), 0, QuietFeed, may_control=True)
    session.supervision.take_over(monitor)
    await asyncio.sleep(2)
    session.supervision.attach(monitor, Supervisor(uuid4(), "Ada"), 0, QuietFeed, may_control=True)
    session.supervision.hand_back(monitor)
    await asyncio.sleep(4)
    socket.hang_up()
    result = await running
    assert [content for role, content in list_transcript(result) if role in ("agent", "system")][-4:] == [
        "Reception handed the conversation over to Billing: The caller disputes an invoice.",
        "A person took the call over.",
        "The person handed the call back to the agent.",
        "Billing goes on.",
    ]


@dataclass
class Shelf:
    """Knowledge with one passage, which keeps its questions."""

    questions: list[str] = field(default_factory=list)

    async def find_passages(self, question: str, *, limit: int) -> list[str]:
        self.questions.append(question)
        return ["Invoices are due after 14 days."]


@pytest.mark.parametrize("context", ["everything", "nothing"])
async def test_the_next_agent_searches_its_knowledge_for_what_the_caller_said(engine: CallEngine, context: str) -> None:
    office, socket, billing, shelf = Office(), Socket(), Model("After 14 days."), Shelf()
    billing_id = office.add("Billing", billing, Transcriber())
    office.agents[billing_id] = replace(office.agents[billing_id], knowledge=shelf)
    reception = Model(("One moment please.", TO_BILLING))
    live = start_call(office, reception, "when is my invoice due", handoffs=[to_agent(billing_id, context=context)])
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(6)
    socket.hang_up()
    await running
    assert ("when is my invoice due" in shelf.questions) == (context == "everything")
    assert ("after 14 days" in str(billing.requests[0].messages)) == (context == "everything")
    assert len(billing.requests) == 1


async def test_a_specialist_lets_the_caller_wait_for_a_person(engine: CallEngine) -> None:
    office, socket, queue = Office(), Socket(), Queue()
    ask = ToolCall("2", "ask_for_person", {"reason": "An invoice."})
    billing = Model(("I will ask a colleague.", ask), "", "Nobody is there.")
    billing_id = office.add("Billing", billing, Transcriber(), queue_wait_seconds=10)
    reception = Model(("One moment.", TO_BILLING))
    live = start_call(office, reception, "my invoice", handoffs=[to_agent(billing_id)])
    live.queue = queue
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(20)
    socket.hang_up()
    result = await running
    assert queue.done == ["join An invoice.", "leave"]
    assert (result.transcript[-1].agent_id, result.transcript[-1].content) == (billing_id, "Nobody is there.")
    offered = [spec.name for spec in billing.requests[0].tools]
    assert "ask_for_person" in offered
    assert "ask_for_person" not in [spec.name for spec in reception.requests[0].tools]


class TakePayment(AgentTool[ToolParameters]):
    """Takes a card number on the keypad."""

    name, description = "take_payment", "Take a payment."
    keypad_entries = (KeypadEntry("card", "Enter your card number.", 16), KeypadEntry("code", "", 3))

    class Parameters(ToolParameters):
        card: str
        code: str

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {"paid": True}


async def test_a_specialist_takes_a_payment_and_nothing_of_it_comes_back(engine: CallEngine) -> None:
    office, socket = Office(), Socket()
    back = ToolCall("3", "hand_back", {"result": "Paid with card 4111111111111111, code 737."})
    payment = Model(ToolCall("2", "take_payment", {}), ("Thank you, that is paid.", back))
    payment_id = office.add("Payments", payment, Transcriber("yes my code is 1234"))
    office.agents[payment_id] = replace(office.agents[payment_id], tools=(TakePayment(),))
    go = ToolCall("1", "hand_off_to_payments", {"reason": "Wants to pay."})
    reception = Model(("One moment.", go), "Is there anything else?")
    handoff = to_agent(payment_id, mode="call_and_return", context="nothing")
    live = start_call(office, reception, "I want to pay", handoffs=[handoff])
    live.agent = replace(live.agent, redactor=Redactor([each() for each in BUILT_IN], frozenset({"card_number"})))
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(6)
    for digit in "4111111111111111737":
        socket.press(digit)
    await asyncio.sleep(8)
    socket.hang_up()
    result = await running
    assert [content for role, content in list_transcript(result) if role == "system"] == [
        "Reception handed the conversation over to Payments: Wants to pay.",
        "Payments handed the conversation back to Reception: Paid with card [card number], code [keypad].",
    ]
    assert list_transcript(result)[-1] == ("agent", "Is there anything else?")
    (role, note), *nothing = list_context(payment)
    assert (role, nothing) == ("system", [])
    assert "Wants to pay" not in note
    context = list_context(reception, 1)
    assert context[0] == ("user", "I want to pay")
    assert context[-1][0] == "system"
    assert "Paid with card [card number], code [keypad]" in context[-1][1]
    assert not any("paid" in content.lower() for _, content in context[:-1])
    assert "4111" not in str(reception.requests[1].messages)
    assert "4111" not in str(result.transcript)
    log = live.log
    assert isinstance(log, Log)
    assert [record.mode for record in log.handoffs] == ["call_and_return", "return"]


@pytest.mark.parametrize("context", ["everything", "last_turns", "summary", "no summary", "nothing"])
async def test_the_next_agent_gets_the_amount_that_is_chosen(engine: CallEngine, context: str) -> None:
    office, socket, billing = Office(), Socket(), Model("Which invoice is it?")
    said = ("My name is Ada", "I have a question", "about my invoice")
    summary: str | ProviderError = (
        ProviderError("no summary") if context == "no summary" else "Ada asks about an invoice."
    )
    reception = Model("Hello Ada.", "What is it?", ("One moment please, I connect you.", TO_BILLING), summary)
    fields: dict[str, object] = {"context": "summary" if "summary" in context else context, "last_turns": 2}
    handoff = to_agent(office.add("Billing", billing, Transcriber()), **fields)
    live = start_call(office, reception, *said, handoffs=[handoff])
    running = asyncio.create_task(run(engine, live, socket))
    for text in said:
        await socket.say(synthesize_caller(text))
        await asyncio.sleep(5)
    await asyncio.sleep(4)
    socket.hang_up()
    await running
    *words, (_, note) = list_context(billing)
    expected = {
        "everything": [
            ("user", "My name is Ada"),
            ("assistant", "Hello Ada."),
            ("user", "I have a question"),
            ("assistant", "What is it?"),
            ("user", "about my invoice"),
            ("assistant", "One moment please, I connect you."),
        ],
        "last_turns": [("user", "about my invoice"), ("assistant", "One moment please, I connect you.")],
    }
    assert words == expected.get(context, [])
    assert ("Ada asks about an invoice." in note) == (context == "summary")
    assert ("Caller: about my invoice" in note) == (context == "no summary")
    assert ("The caller disputes" in note) == (context != "nothing")
    assert len(billing.requests) == 1


@dataclass
class LookUp(AgentTool[ToolParameters]):
    """Returns the status of an account."""

    name = "look_up"
    description = "Look the account up."

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {"account": {"status": "overdue"}}


@pytest.mark.parametrize("fact", ["keys", "result", "variables"])
async def test_a_fact_hands_the_call_over_without_the_model(engine: CallEngine, fact: str) -> None:
    office, socket, billing = Office(), Socket(), Model("Billing goes on.")
    conditions = {
        "keys": [build_condition("keys", "2"), build_condition("variables.mood", "kind")],
        "result": [build_condition("tool", "look_up"), build_condition("result.account.status", "overdue")],
        "variables": [build_condition("variables.mood", "kind")],
    }
    billing_id = office.add("Billing", billing, Transcriber(), greeting_message="Billing, good day.")
    greeting = "own" if fact == "variables" else "continue"
    handoff = to_agent(billing_id, description="", conditions=conditions[fact], greeting=greeting)
    other = to_agent(
        office.add("Sales", Model(), Transcriber()), description="", conditions=[build_condition("keys", "1")]
    )
    reception = Model(ToolCall("1", "look_up", {}), "I should not say that.")
    live = start_call(office, reception, "look", handoffs=[other, handoff], greeting_message="Press two for billing.")
    live.agent = replace(live.agent, tools=(LookUp(),))
    running = asyncio.create_task(run(engine, live, socket))
    await asyncio.sleep(0.7)
    if fact == "keys":
        socket.press("2")
        socket.press("#")
    elif fact == "result":
        await asyncio.sleep(2)
        await socket.say(SPEECH)
    await asyncio.sleep(6)
    socket.hang_up()
    result = await running
    said = [(entry.agent_id, entry.content) for entry in result.transcript if entry.role == "agent"]
    assert said[-1] == (billing_id, "Billing, good day." if fact == "variables" else "Billing goes on.")
    assert ("system", "Reception handed the conversation over to Billing.") in list_transcript(result)
    assert len(said) == (1 if fact == "variables" else 2)
    assert len(reception.requests) == (1 if fact == "result" else 0)
    log = live.log
    assert isinstance(log, Log)
    assert [record.forced for record in log.handoffs] == [True]
    assert not any(spec.name.startswith("hand_off") for request in reception.requests for spec in request.tools)


async def test_an_agent_that_cannot_be_opened_leaves_the_call_where_it_is(engine: CallEngine) -> None:
    office, socket = Office(), Socket()
    billing_id = office.add("Billing", Model(), Transcriber())
    office.closed.add(billing_id)
    reception = Model(TO_BILLING, "I am sorry, billing cannot be reached.")
    live = start_call(office, reception, "my invoice", handoffs=[to_agent(billing_id)])
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(5)
    socket.hang_up()
    result = await running
    assert list_transcript(result)[-1] == ("agent", "I am sorry, billing cannot be reached.")
    assert "no voice today" in reception.requests[1].messages[-1].content
    assert APOLOGY not in str(result.transcript)


async def test_agents_that_send_the_caller_back_and_forth_come_to_an_end(engine: CallEngine) -> None:
    office, socket = Office(), Socket()
    conditions = [build_condition("variables.mood", "kind")]
    billing_id, model = uuid4(), Model()
    live = start_call(office, model, handoffs=[to_agent(billing_id, conditions=conditions, description="")])
    back = to_agent(live.agent.id, conditions=conditions, description="")
    billing = replace(live.agent, id=billing_id, name="Billing")
    office.agents[billing_id] = replace(billing, settings=billing.settings.model_copy(update={"handoffs": [back]}))
    running = asyncio.create_task(run(engine, live, socket))
    await asyncio.sleep(5)
    socket.hang_up()
    result = await running
    assert len([entry for entry in result.transcript if entry.role == "system"]) == MOST_HANDOFFS
    assert "too often" in model.requests[0].messages[-1].content


def test_tools_are_named_after_their_agents() -> None:
    assert name_tools(["Billing & Payments", "Büro", "Billing, payments", "日本"]) == [
        "hand_off_to_billing_payments",
        "hand_off_to_buro",
        "hand_off_to_billing_payments_2",
        "hand_off_to_agent",
    ]
