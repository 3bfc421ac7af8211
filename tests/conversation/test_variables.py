"""Variables of a call: where they come from, which origins count, and what is recorded."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest
from switchboard.engine.conversation.agent_settings import AgentVariable, HandoffCondition
from switchboard.engine.conversation.engine import CallEngine
from switchboard.engine.conversation.variables import Variables
from switchboard.foundation.encryption.content import Content
from switchboard.plugin_sdk import AgentTool, JsonObject, ToolCall, ToolContext, ToolParameters, Variable
from switchboard.resources.calls.models import Call
from switchboard.resources.calls.states import build_variables

from tests.conversation.test_handoff import Office, list_context, run, start_call, to_agent
from tests.fixtures.conversation import Log, Model, Socket, Transcriber, list_transcript, synthesize_caller

pytestmark = pytest.mark.usefixtures("task_check")
ORDER = AgentVariable(name="order", description="The number of the order.")
PIN = AgentVariable(name="pin", source="keypad", prompt="Your PIN, please.", max_digits=4)
PLAN = AgentVariable(name="plan", source="tool", tool="find_account", path="account.plan")
SPEECH = synthesize_caller("order seventeen")


class FindAccount(AgentTool[ToolParameters]):
    name = "find_account"
    description = "Find the account."

    def __init__(self) -> None:
        self.known = dict[str, Variable]()

    async def run(self, context: ToolContext, parameters: ToolParameters) -> JsonObject:
        self.known = dict(context.variables)
        return {"account": {"plan": "gold"}}


async def test_a_call_learns_from_words_keys_and_tools(engine: CallEngine) -> None:
    said = ToolCall("1", "note_variables", {"order": "17"})
    model = Model(said, ToolCall("2", "key_in_pin", {}), ToolCall("3", "find_account", {}), "Thank you.")
    office, socket, tool = Office(), Socket(), FindAccount()
    live = start_call(office, model, "order seventeen", handoffs=[], variables=[ORDER, PIN, PLAN])
    live.agent = replace(live.agent, tools=[tool])
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(6)
    for key in "4711":
        socket.press(key)
    await asyncio.sleep(6)
    socket.hang_up()
    result = await running
    lines = [content for role, content in list_transcript(result) if role == "system"]
    assert lines == ["order is 17 (words).", "pin is [keypad] (keypad).", "plan is gold (tool)."]
    assert list_transcript(result)[-1] == ("agent", "Your PIN, please. Thank you.")
    assert tool.known["order"] == Variable("17", "words")
    assert tool.known["pin"] == Variable("4711", "keypad"), "a tool gets it as it is"
    log = live.log
    assert isinstance(log, Log)
    kept = [(each.name, each.value, each.origin) for each in log.variables]
    assert kept == [("order", "17", "words"), ("pin", "[keypad]", "keypad"), ("plan", "gold", "tool")]
    assert "4711" not in str([request.messages for request in model.requests])


@pytest.mark.parametrize("origin", ["words", "keypad"])
async def test_words_do_not_satisfy_an_agent_that_takes_payments(engine: CallEngine, origin: str) -> None:
    office, socket = Office(), Socket()
    payment = Model("How do you pay?")
    prompt = "Order {{order}}, PIN {{pin:keypad}}, mood {{mood:tool}}{{mood:metadata}}."
    payment_id = office.add("Payments", payment, Transcriber(), system_prompt=prompt)
    entered = HandoffCondition(field="variables.pin", operator="exists", least_origin="keypad")
    pin = PIN if origin == "keypad" else AgentVariable(name="pin", description="The PIN.")
    note = ToolCall("1", "note_variables", {"order": "17", "pin": "4711"} if origin == "words" else {"order": "17"})
    model = Model(note, *([ToolCall("2", "key_in_pin", {})] if origin == "keypad" else []), "I cannot do that.")
    handoff = to_agent(payment_id, description="", conditions=[entered])
    live = start_call(office, model, "order seventeen", handoffs=[handoff], variables=[ORDER, pin])
    running = asyncio.create_task(run(engine, live, socket))
    await socket.say(SPEECH)
    await asyncio.sleep(6)
    for key in "4711" if origin == "keypad" else "":
        socket.press(key)
    await asyncio.sleep(6)
    socket.hang_up()
    result = await running
    said = [content for role, content in list_transcript(result) if role == "agent"]
    if origin == "words":
        assert (said[-1], payment.requests) == ("I cannot do that.", [])
        return
    assert said[-1] == "How do you pay?"
    assert payment.requests[0].messages[0].content.startswith("Order 17, PIN [keypad], mood kind.")
    assert "4711" not in str(list_context(payment))


def test_a_value_does_not_replace_one_of_a_better_origin() -> None:
    variables = Variables.from_texts({"plan": "gold"}, "metadata")
    assert not variables.set("plan", "platinum", "words")
    assert not variables.set("plan", "gold", "metadata")
    assert variables.set("plan", "silver", "tool")
    assert variables.set("order", "17", "words")
    assert variables.set("order", "18", "words"), "the caller corrects it"
    assert (variables.list_values(), variables.list_values("keypad")) == (
        {"plan": "silver", "order": "18"},
        {"plan": "silver"},
    )


@pytest.mark.parametrize("direction", ["inbound", "outbound"])
def test_what_came_with_a_call_is_worth_less_than_what_the_organization_knows(direction: str) -> None:
    forged = {"calling_number": "+15550100099", "contact_name": "Eve", "plan": "gold"}
    call = Call(
        organization_id=uuid4(),
        direction=direction,
        from_number="+15550100001",
        to_number="+15550100200",
        carrier="loopback",
        call_metadata=Content(forged),
    )
    known = build_variables(call, Variables.from_texts({"contact_name": "Ada"}, "crm")).values
    if direction == "outbound":
        assert known["calling_number"] == Variable("+15550100099", "metadata"), "the organization's own request says so"
        return
    assert known["calling_number"] == Variable("+15550100001", "carrier")
    assert (known["contact_name"], known["plan"]) == (Variable("Ada", "crm"), Variable("gold", "carrier"))
