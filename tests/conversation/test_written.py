"""Hand-offs in conversations in writing, with scripted models: what the next agent knows, and who answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from switchboard.engine.conversation.agent_settings import AgentSettings, Handoff
from switchboard.engine.conversation.call import Tool
from switchboard.engine.conversation.handoff_tools import MOST_HANDOFFS
from switchboard.engine.conversation.toolbox import Toolbox
from switchboard.engine.conversation.variables import Variables
from switchboard.engine.conversation.written import (
    Contribution,
    WritingAgent,
    WrittenConversation,
    WrittenLine,
    WrittenPart,
    read_parts,
)
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.engine.redaction.redactor import Redactor
from switchboard.plugin_sdk import AgentTool, JsonObject, Message, ProviderError, ToolCall, ToolContext, ToolParameters

from tests.conversation.test_handoff import build_condition, to_agent
from tests.fixtures.conversation import Model


class FindAccount(AgentTool[ToolParameters]):
    name = "find_account"
    description = "Find an account."

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        return {"status": "overdue"}


@dataclass
class Chat:
    """The agents of a conversation, and what they contribute."""

    agents: dict[UUID, WritingAgent] = field(default_factory=dict)
    said: list[Contribution] = field(default_factory=list)
    words: list[WrittenLine] = field(default_factory=list)
    parts: list[JsonObject] = field(default_factory=list)
    first: UUID | None = None
    place: int = 0
    closed: set[UUID] = field(default_factory=set)

    @property
    def names(self) -> Mapping[UUID, str]:
        return {agent_id: agent.name for agent_id, agent in self.agents.items()}

    async def open(self, agent_id: UUID) -> WritingAgent:
        if agent_id in self.closed:
            raise ProviderError("no model today")
        return self.agents[agent_id]

    def add(self, name: str, model: Model, *handoffs: Handoff, redacts: bool | str = False, greeting: str = "") -> UUID:
        """Add an agent and return its id; the last one that is added has the conversation first."""
        changes = {"system_prompt": f"You are {name}.", "handoffs": list(handoffs), "greeting_message": greeting}
        settings, self.first = AgentSettings().model_copy(update=changes), uuid4()

        def build_tools(offered: Sequence[Tool]) -> Toolbox:
            return Toolbox([FindAccount(), *offered], ToolContext(uuid4(), uuid4(), None, "", ""))

        visible = frozenset({"card_number"} if redacts == "visible" else ())
        detectors = [detector for detector in BUILT_IN if detector.name == "card_number"] if redacts else []
        redactor = Redactor(
            detectors=[detector() for detector in detectors], kinds=frozenset({"card_number"}), visible_kinds=visible
        )
        self.agents[self.first] = WritingAgent(
            self.first, name, settings, model, build_tools, redactor=redactor if redacts else Redactor()
        )
        return self.first

    async def record(self, contribution: Contribution) -> int:
        self.said.append(contribution)
        self.place += 1
        return self.place

    async def write(self, text: str, *, variables: Mapping[str, str] | None = None) -> list[str]:
        """Let the other side write, in a conversation that is read from what was stored; return what it gets."""
        assert self.first is not None
        begins, self.said = not self.words, []
        self.place += 1
        self.words.append(WrittenLine(self.place, Message("user", text)))
        parts = read_parts(self.parts, self.first, self.agents)
        conversation = WrittenConversation(
            self, parts, self.words, self.record, variables=Variables.from_texts(variables or {}, "metadata")
        )
        await conversation.answer(begins=begins)
        self.parts = [part.model_dump(mode="json") for part in conversation.parts]
        return [contribution.text for contribution in self.said]


def list_context(model: Model, request: int = -1) -> list[tuple[str, str]]:
    """The messages of a request, without the prompt."""
    return [(message.role, message.content) for message in model.requests[request].messages[1:]]


def go(name: str, reason: str = "") -> ToolCall:
    return ToolCall("1", f"hand_off_to_{name}", {"reason": reason})


@pytest.mark.parametrize("context", ["everything", "last_turns", "summary", "nothing"])
async def test_the_next_agent_knows_what_is_passed_on(context: str) -> None:
    chat, billing = Chat(), Model("Which one?", "Paid.")
    billing_id = chat.add("Billing", billing, redacts=True)
    said = [("One moment.", go("billing", "Card 4111111111111111"))]
    reception = Model("Hello.", *said, *(["They want to pay."] if context == "summary" else []))
    chat.add("Reception", reception, to_agent(billing_id, context=context, last_turns=2))
    await chat.write("Hi, my card is 4111 1111 1111 1111")
    assert await chat.write("My invoice") == [
        "One moment.",
        "Reception handed the conversation over to Billing: Card [card number]",
        "Which one?",
    ]
    before = [("user", "Hi, my card is [card number]"), ("assistant", "Hello."), ("user", "My invoice")]
    words = {"everything": before, "last_turns": before[2:]}.get(context, [])
    expected = [*words, ("assistant", "One moment.")] if words else []
    *passed, (role, note) = list_context(billing)
    assert (passed, role) == (expected, "system")
    assert ("Card [card number]" in note, "They want to pay." in note) == (context != "nothing", context == "summary")
    assert await chat.write("Number twelve") == ["Paid."], "it keeps the conversation"
    assert list_context(billing)[-3:] == [("system", note), ("assistant", "Which one?"), ("user", "Number twelve")]
    assert len(list_context(billing)) == len(expected) + 3


async def test_specialists_come_back_with_a_result() -> None:
    chat, bank = Chat(), Model("Which card?", ("Done.", ToolCall("2", "hand_back", {"result": "42 paid"})))
    bank_id = chat.add("Bank", bank)
    billing = Model(go("bank"), ("It is paid.", ToolCall("3", "hand_back", {"result": "paid"})))
    billing_id = chat.add("Billing", billing, to_agent(bank_id, mode="call_and_return", context="nothing"))
    reception = Model(("One moment.", go("billing")), "Anything else?")
    chat.add("Reception", reception, to_agent(billing_id, mode="call_and_return"))
    await chat.write("My invoice")
    assert await chat.write("The blue card") == [
        "Done.",
        "Bank handed the conversation back to Billing: 42 paid",
        "It is paid.",
        "Billing handed the conversation back to Reception: paid",
        "Anything else?",
    ]
    assert [content for role, content in list_context(billing) if role != "system"] == ["My invoice", "One moment."]
    assert "The blue card" not in str(list_context(billing)), "nothing of the bank's part comes back"
    spoken = [content for role, content in list_context(reception) if role != "system"]
    assert spoken == ["My invoice", "One moment.\nWhich card?", "The blue card", "Done.\nIt is paid."]
    assert "hand_back" not in [tool.name for tool in reception.requests[-1].tools]


@pytest.mark.parametrize("greeting", ["own", "none"])
async def test_facts_hand_over_and_the_next_agent_waits(greeting: str) -> None:
    chat, billing, gold = Chat(), Model("Yes?"), Model()
    overdue = [build_condition("tool", "find_account"), build_condition("result.status", "overdue")]
    billing_id = chat.add("Billing", billing, greeting="Billing, {{name}}.")
    to_billing = Handoff(agent_id=str(billing_id), conditions=overdue, greeting=greeting)  # type: ignore[arg-type]
    gold_id = chat.add("Gold", gold, to_billing)
    to_gold = Handoff(agent_id=str(gold_id), conditions=[build_condition("variables.plan", "gold")])
    reception = Model()
    chat.add("Reception", reception, to_gold)
    gold.answers = [("Let me see.", ToolCall("1", "find_account", {}))]
    assert await chat.write("Hello", variables={"plan": "gold", "name": "Ada"}) == [
        "Reception handed the conversation over to Gold.",
        "Let me see.",
        "Gold handed the conversation over to Billing.",
        *(["Billing, Ada."] if greeting == "own" else []),
    ]
    assert (reception.requests, billing.requests, [said.forced for said in chat.said if said.handoff]) == (
        [],
        [],
        [True, True],
    )
    assert await chat.write("Number twelve") == ["Yes?"]


async def test_an_agent_that_cannot_answer_leaves_the_conversation_where_it_is() -> None:
    chat = Chat()
    billing_id = chat.add("Billing", Model())
    reception = Model(go("billing"), "Billing is closed.")
    chat.add("Reception", reception, to_agent(billing_id))
    chat.closed.add(billing_id)
    assert await chat.write("My invoice") == ["Billing is closed."]
    assert "the other agent cannot answer now (no model today): go on yourself" in list_context(reception)[-1][1]


async def test_agents_that_send_somebody_back_and_forth_come_to_an_end() -> None:
    chat = Chat()
    first = chat.add("First", Model(*[go("second")] * 25, "I stay."))
    second = chat.add("Second", Model(*[go("first")] * 26, "I stay."), to_agent(first))
    settings = chat.agents[first].settings.model_copy(update={"handoffs": [to_agent(second)]})
    chat.agents[first] = WritingAgent(first, "First", settings, chat.agents[first].llm, chat.agents[first].build_tools)
    said = await chat.write("Hello")
    assert (len(said), said[-1]) == (MOST_HANDOFFS + 1, "I stay.")


def test_parts_begin_again_with_another_first_agent() -> None:
    first, second = uuid4(), uuid4()
    stored = [WrittenPart(agent_id=each).model_dump(mode="json") for each in (first, second)]
    assert [part.agent_id for part in read_parts(stored, first, {first, second})] == [first, second]
    assert [part.agent_id for part in read_parts(stored, first, {first})] == [first]
    assert [part.agent_id for part in read_parts(stored, second, {first, second})] == [second]


async def test_what_is_kept_of_a_hand_off_is_redacted_also_where_the_model_sees_more() -> None:
    chat, billing = Chat(), Model("Which one?")
    billing_id = chat.add("Billing", billing, redacts="visible")
    reception = Model(("One moment.", go("billing", "Card 4111111111111111")), "Pays with 4111111111111111.")
    chat.add("Reception", reception, to_agent(billing_id, context="summary"))
    await chat.write("I pay with 4111 1111 1111 1111")
    assert "4111" not in str(chat.parts)
    assert "Card [card number]" in str(chat.parts)
    assert "Pays with [card number]" in str(chat.parts)
