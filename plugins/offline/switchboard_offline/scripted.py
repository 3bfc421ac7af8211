"""Provider `scripted`: a deterministic stand-in for a language model that follows the rules in the agent's prompt.

It analyzes a call's transcript by rules and lists of words.
"""

import json
import re
from collections.abc import AsyncIterator, Sequence
from functools import reduce
from typing import cast

from pydantic import JsonValue
from switchboard.plugin_sdk import (
    KNOWLEDGE,
    ChatEvent,
    ChatRequest,
    JsonObject,
    LLMProvider,
    Message,
    ModelUsage,
    ProviderSettings,
    TextDelta,
    ToolCall,
)

from switchboard_offline.rules import (
    Script,
    ScriptedCall,
    ScriptedRule,
    find_best_passage_sentence,
    find_best_rule,
    find_best_sentence,
    parse_prompt,
    split_into_words,
)

GOOD = frozenset((
    "thanks", "thank", "great", "perfect", "wonderful", "good", "excellent", "nice", "lovely", "happy", "helpful",
    "glad", "appreciate", "awesome",
))  # fmt: skip
BAD = frozenset((
    "bad", "terrible", "awful", "angry", "wrong", "problem", "complain", "complaint", "broken", "useless",
    "disappointed", "annoyed", "unhappy", "hate", "worst", "ridiculous",
))  # fmt: skip
BY_RULES = "(Analyzed by rules, not by a language model.)"
UNANSWERED = ("did not work", "not sure that i understood", "something went wrong")
FACTS = {
    "name": re.compile(r"\bmy name is ([a-z]+(?: [a-z]+)?)", re.IGNORECASE),
    "email": re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"),
    "phone_number": re.compile(r"\+\d{7,15}"),
}
EMPTY: dict[str, JsonValue] = {"string": "", "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}


def _analyze_transcript(transcript: str, schema: JsonObject) -> JsonObject:
    """Return an object of the schema: known fields by rules, and an empty value of the right type for all others."""
    lines = [line.partition(": ") for line in transcript.splitlines()]
    user, agent = ([text for speaker, _, text in lines if text and speaker == role] for role in ("user", "agent"))
    facts = {name: pattern.search(" ".join(user)) for name, pattern in FACTS.items()}
    known: JsonObject = {
        "summary": f"{_summarize(user, agent)} {BY_RULES}",
        "successful": bool(user) and bool(agent) and not any(phrase in agent[-1].lower() for phrase in UNANSWERED),
        "sentiment": _judge_sentiment(user),
        "extracted_data": {name: found[found.lastindex or 0] for name, found in facts.items() if found is not None},
    }
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    return {name: known.get(name, EMPTY.get(str(part.get("type")))) for name, part in properties.items()}


def _summarize(user: list[str], agent: list[str]) -> str:
    if not user:
        return "The caller said nothing that was understood."
    questions = "; ".join(f"“{text}”" for text in user[:5])
    answer = f" The agent's last words were: “{agent[-1]}”" if agent else ""
    return f"The caller said {questions}.{answer}"


def _judge_sentiment(user: list[str]) -> str:
    if not user:
        return "unknown"
    heard = split_into_words(" ".join(user))
    balance = sum(word in GOOD for word in heard) - sum(word in BAD for word in heard)
    return "positive" if balance > 0 else "negative" if balance < 0 else "neutral"


EVERYDAY: tuple[ScriptedRule, ...] = (
    ScriptedRule(
        ("goodbye", "bye", "bye bye", "that is all"), "Goodbye, and thank you for calling.", (ScriptedCall("end_call"),)
    ),
    ScriptedRule(("thank you", "thanks", "thank you very much"), "You are welcome. Is there anything else?", ()),
    ScriptedRule(("hello", "hi", "good morning", "good afternoon", "good evening"), "Hello! How can I help you?", ()),
    ScriptedRule(("how are you",), "I am fine, thank you. How can I help you?", ()),
    ScriptedRule(("can you help me", "i need help"), "Yes, I will do my best. What is it about?", ()),
    ScriptedRule(
        ("who are you", "what is your name", "are you a robot"),
        "I am an automated voice agent. How can I help you?",
        (),
    ),
    ScriptedRule(("can you repeat that", "say that again", "pardon"), "", (ScriptedCall("repeat"),)),
    ScriptedRule(("yes", "yes please"), "Good. What would you like to know?", ()),
    ScriptedRule(("no", "no thank you"), "All right. Is there anything else?", ()),
)
QUESTIONS = (
    "what are your opening hours",
    "when are you open",
    "where are you",
    "how much does it cost",
    "can i speak to a human",
)
OFFERED = 2
"""Free times for an appointment that are said at once."""
FAILURE = "did not work"
FAILED = "I am sorry, that did not work."
HANDED_OVER = re.compile(r"taken this conversation over|handed the conversation back")
"""Instructions after which the agent answers what the caller said to another one."""
OTHERWISE = "I am not sure that I understood. Could you say that in other words?"


class ScriptedLLM(LLMProvider[ProviderSettings]):
    """Model that applies the prompt's rules, then everyday phrases, then the best sentence of knowledge bases or
    prompt.
    """

    name = "scripted"
    title = "Scripted"

    async def check(self) -> None:
        """Do nothing, because nothing can fail."""

    async def chat(self, request: ChatRequest) -> AsyncIterator[ChatEvent]:
        prompt, *later = [message.content for message in request.messages if message.role == "system"] or [""]
        passages = [text for text in later if text.startswith(KNOWLEDGE)]
        instructions = [text for text in reversed(later) if not text.startswith(KNOWLEDGE)]
        calls: list[ToolCall] = []
        if request.response_schema is not None:
            said = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
            text = json.dumps(_analyze_transcript(said, request.response_schema))
        else:
            known = "\n\n".join(text.removeprefix(KNOWLEDGE) for text in passages)
            text, calls = _answer(_combine_scripts(prompt, instructions), known, request)
        for piece in re.findall(r"\S+\s*", text):
            yield TextDelta(piece)
        for call in calls:
            yield call
        spent = sum(len(message.content.split()) for message in request.messages)
        yield ModelUsage("scripted", input_tokens=spent, output_tokens=len(text.split()), cost=0.0)

    def list_expected_phrases(self, system_prompt: str) -> Sequence[str]:
        own = [phrase for rule in parse_prompt(system_prompt).rules for phrase in rule.phrases]
        everyday = [phrase for rule in EVERYDAY for phrase in rule.phrases]
        return list(dict.fromkeys([*own, *everyday, *QUESTIONS]))


def _combine_scripts(prompt: str, instructions: Sequence[str]) -> Script:
    """Return the prompt's script, preceded by the rules of later instructions."""
    script = parse_prompt(prompt)
    later = [parse_prompt(text) for text in instructions]
    rules = [rule for one in later for rule in one.rules]
    otherwise = next((one.otherwise for one in later if one.otherwise is not None), script.otherwise)
    return Script((*rules, *script.rules), otherwise, script.sentences)


def _answer(script: Script, knowledge: str, request: ChatRequest) -> tuple[str, list[ToolCall]]:
    last = request.messages[-1]
    if last.role == "tool":
        return _answer_after_tool(request.messages), []
    if last.role == "system" and FAILURE in last.content:
        return FAILED, []
    is_handed_over = last.role == "system" and HANDED_OVER.search(last.content) is not None
    ignored = ("system", "assistant", "tool") if is_handed_over else ("system",)
    last = next((message for message in reversed(request.messages) if message.role not in ignored), last)
    said = last.content if last.role == "user" else ""
    rule = _choose_rule(script, knowledge, said)
    offered = {tool.name for tool in request.tools}
    if any(action.name == "repeat" for action in rule.calls):
        spoken = (message.content for message in reversed(request.messages) if message.role == "assistant")
        return next(filter(None, spoken), OTHERWISE), []
    return rule.say, [
        ToolCall(f"call_{len(request.messages)}_{index}", action.name, _fill_arguments(action, request.messages))
        for index, action in enumerate(rule.calls)
        if action.name in offered
    ]


def _choose_rule(script: Script, knowledge: str, said: str) -> ScriptedRule:
    rule = find_best_rule(script.rules, said) or find_best_rule(EVERYDAY, said)
    if rule is not None:
        return rule
    known = find_best_passage_sentence(knowledge, said)
    if known is None and script.otherwise is not None:
        return script.otherwise
    return ScriptedRule((), known or find_best_sentence(script.sentences, said) or OTHERWISE, ())


def _fill_arguments(action: ScriptedCall, messages: Sequence[Message]) -> JsonObject:
    """Return the arguments of a call; `$slots.0.slot_token` is that value of the last tool's result that has it."""
    results = [json.loads(message.content) for message in reversed(messages) if message.role == "tool"]
    return {name: _find_value(value, results) for name, value in action.arguments.items()}


def _find_value(value: JsonValue, results: Sequence[JsonValue]) -> JsonValue:
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    found = (reduce(_take_step, value[1:].split("."), result) for result in results)
    return next((one for one in found if one is not None), value)


def _take_step(value: JsonValue, step: str) -> JsonValue:
    if isinstance(value, dict):
        return value.get(step)
    return value[int(step)] if isinstance(value, list) and step.isdecimal() and int(step) < len(value) else None


def _answer_after_tool(messages: Sequence[Message]) -> str:
    """Return the reply after a tool's result.

    Text spoken with the call is enough; a silent call needs a reply, and a failure an apology.
    """
    result: JsonObject = json.loads(messages[-1].content)
    if "error" in result:
        return FAILED
    asked = next((message for message in reversed(messages) if message.tool_calls), None)
    if asked is None or asked.content:
        return ""
    if isinstance(passages := result.get("passages"), list):
        question = str(asked.tool_calls[0].arguments.get("query", ""))
        found = find_best_passage_sentence("\n\n".join(map(str, passages)), question)
        return found or "I could not find anything about that."
    if isinstance(slots := result.get("slots"), list):
        times = [str(slot["when"]) for slot in slots if isinstance(slot, dict)][:OFFERED]
        return f"I can offer {' or '.join(times)}. Which one suits you?" if times else "I am sorry, nothing is free."
    for outcome in ("booked", "moved", "canceled"):
        if result.get(outcome) is True:
            return f"Your appointment is {outcome}: {result.get('when', result.get('appointment'))}."
    answer = result.get("answer", result.get("text"))
    return answer if isinstance(answer, str) else ""
