"""The contract of a language model, and the rules of a prompt."""

import json

import pytest
from switchboard.plugin_sdk import (
    KNOWLEDGE,
    ChatRequest,
    JsonObject,
    Message,
    ProviderSettings,
    TextDelta,
    ToolCall,
    ToolSpec,
)
from switchboard.plugin_sdk.testing import LLMContract
from switchboard_offline.scripted import ScriptedLLM

PROMPT = """You answer for a bakery.
When the caller says "opening hours" or "when are you open": say "From seven to six."
When the caller says "weather": call weather(city="Paris")
When the caller says "a human": say "One moment." and call transfer_call(to_number="+15550100002")
Otherwise: say "Ask me about our hours."
Rye bread is baked on Tuesdays."""
TOOLS = tuple(ToolSpec(name, "", {"type": "object"}) for name in ("end_call", "transfer_call", "weather"))


async def generate_answer(*utterance: str, prompt: str = PROMPT) -> tuple[str, list[ToolCall]]:
    messages = (Message("system", prompt), *(Message("user", text) for text in utterance))
    events = [event async for event in ScriptedLLM(ProviderSettings()).chat(ChatRequest(messages, tools=TOOLS))]
    return "".join(event.text for event in events if isinstance(event, TextDelta)), [
        event for event in events if isinstance(event, ToolCall)
    ]


class TestScripted(LLMContract[ScriptedLLM]):
    @pytest.fixture
    def provider(self) -> ScriptedLLM:
        return ScriptedLLM(ProviderSettings())

    @pytest.fixture
    def unknown_model(self) -> None:
        return None

    @pytest.fixture
    def tool_request(self, weather: ToolSpec) -> ChatRequest:
        return ChatRequest((Message("system", PROMPT), Message("user", "weather please")), tools=(weather,))


@pytest.mark.parametrize(
    ("utterance", "expected"),
    [
        ("What are your opening hours?", "From seven to six."),
        ("WHEN are you, open", "From seven to six."),
        ("something else entirely", "Ask me about our hours."),
        ("hello", "Hello! How can I help you?"),
    ],
)
async def test_the_best_rule_answers(utterance: str, expected: str) -> None:
    assert (await generate_answer(utterance))[0] == expected


async def test_a_rule_speaks_and_calls_a_tool() -> None:
    text, calls = await generate_answer("can I talk to a human")
    assert text == "One moment."
    assert [(call.name, call.arguments) for call in calls] == [("transfer_call", {"to_number": "+15550100002"})]


async def test_goodbye_ends_the_call_without_a_rule() -> None:
    text, calls = await generate_answer("goodbye", prompt="You are a bakery.")
    assert "Goodbye" in text
    assert [call.name for call in calls] == ["end_call"]


async def test_the_prompts_own_sentences_answer_without_rules() -> None:
    assert (
        await generate_answer("when is rye bread baked", prompt="Our bakery is old. Rye bread is baked on Tuesdays.")
    )[0] == "Rye bread is baked on Tuesdays."


@pytest.mark.parametrize(
    ("passages", "question", "expected"),
    [
        (
            ("Harbour Bike Rental", "Harbour Bike Rental > Opening hours\n\nFrom nine to six. Closed on Mondays."),
            "What are the opening hours of the bike rental?",
            "From nine to six.",
        ),
        (("Bikes\n\nA tandem is 30 euros a day.", "Helmets\n\nThey are free."), "Are helmets free?", "They are free."),
        (("Prices\n\nTandem: 30 euros\n\nHelmet: free",), "What is the tandem?", "Tandem: 30 euros"),
        (("Harbour > What does a bike cost?\n\nTen euros a day.",), "What does a bike cost?", "Ten euros a day."),
        (("Parking is behind the house",), "Where is the parking?", "Parking is behind the house"),
    ],
)
async def test_an_answer_from_a_knowledge_base_is_no_heading(
    passages: tuple[str, ...], question: str, expected: str
) -> None:
    known = Message("system", "\n\n".join((KNOWLEDGE, *passages)))
    messages = (Message("system", "You answer for a shop."), Message("user", question))
    searched = ToolCall("call_1", "search_knowledge", {"query": question})
    result = Message("tool", json.dumps({"passages": passages}), tool_call_id="call_1")
    for conversation in ((*messages, known), (*messages, Message("assistant", "", tool_calls=(searched,)), result)):
        events = [event async for event in ScriptedLLM(ProviderSettings()).chat(ChatRequest(conversation))]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == expected


async def test_a_call_is_analyzed_by_rules() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"summary": {"type": "string"}, "sentiment": {"type": "string"}, "other": {"type": "boolean"}},
    }
    transcript = "user: my name is ada and this is great\nagent: Glad to hear it."
    request = ChatRequest((Message("system", ""), Message("user", transcript)), response_schema=schema)
    answered = "".join(
        [event.text async for event in ScriptedLLM(ProviderSettings()).chat(request) if isinstance(event, TextDelta)]
    )
    analysis = json.loads(answered)
    assert analysis["sentiment"] == "positive"
    assert "great" in analysis["summary"]
    assert analysis["summary"].endswith("(Analyzed by rules, not by a language model.)")
    assert analysis["other"] is False


def test_a_prompts_phrases_are_hints() -> None:
    phrases = ScriptedLLM(ProviderSettings()).list_expected_phrases(PROMPT)
    assert {"opening hours", "a human", "goodbye"} <= set(phrases)
