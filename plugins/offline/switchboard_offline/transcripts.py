"""Analysis of a call's transcript by rules and lists of words."""

import re
from typing import cast

from pydantic import JsonValue
from switchboard.plugin_sdk import JsonObject

from switchboard_offline.rules import split_into_words

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


def analyze_transcript(transcript: str, schema: JsonObject) -> JsonObject:
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
