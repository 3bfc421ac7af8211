"""Analysis of a call's transcript by rules and lists of words."""

import re
from typing import cast

from pydantic import JsonValue
from switchboard.plugin_sdk import JsonObject

from switchboard_offline.rules import split_into_words

GOOD = frozenset(
    [
        "thanks",
        "thank",
        "great",
        "perfect",
        "wonderful",
        "good",
        "excellent",
        "nice",
        "lovely",
        "happy",
        "helpful",
        "glad",
        "appreciate",
        "awesome",
    ]
)
BAD = frozenset(
    [
        "bad",
        "terrible",
        "awful",
        "angry",
        "wrong",
        "problem",
        "complain",
        "complaint",
        "broken",
        "useless",
        "disappointed",
        "annoyed",
        "unhappy",
        "hate",
        "worst",
        "ridiculous",
    ]
)
BY_RULES = "(Analyzed by rules, not by a language model.)"
UNANSWERED = ("did not work", "not sure that i understood", "something went wrong")
NAME = re.compile(r"\bmy name is ([a-z]+(?: [a-z]+)?)", re.IGNORECASE)
EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
PHONE = re.compile(r"\+\d{7,15}")


def analyze_transcript(transcript: str, schema: JsonObject) -> JsonObject:
    """Return an object of the schema: known fields by rules, and an empty value of the right type for all others."""
    said = {role: [text for speaker, text in _lines(transcript) if speaker == role] for role in ("user", "agent")}
    known: JsonObject = {
        "summary": f"{_summary(said['user'], said['agent'])} {BY_RULES}",
        "successful": _successful(said["user"], said["agent"]),
        "sentiment": _sentiment(said["user"]),
        "extracted_data": _facts(" ".join(said["user"])),
    }
    properties = cast("dict[str, JsonObject]", schema.get("properties", {}))
    return {name: known[name] if name in known else _empty(part) for name, part in properties.items()}


def _lines(transcript: str) -> list[tuple[str, str]]:
    pairs = [line.partition(": ") for line in transcript.splitlines()]
    return [(role, text) for role, _, text in pairs if text]


def _summary(user: list[str], agent: list[str]) -> str:
    if not user:
        return "The caller said nothing that was understood."
    questions = "; ".join(f"“{text}”" for text in user[:5])
    answer = f" The agent's last words were: “{agent[-1]}”" if agent else ""
    return f"The caller said {questions}.{answer}"


def _successful(user: list[str], agent: list[str]) -> bool:
    return bool(user) and bool(agent) and not any(phrase in agent[-1].lower() for phrase in UNANSWERED)


def _sentiment(user: list[str]) -> str:
    if not user:
        return "unknown"
    heard = split_into_words(" ".join(user))
    balance = sum(word in GOOD for word in heard) - sum(word in BAD for word in heard)
    return "positive" if balance > 0 else "negative" if balance < 0 else "neutral"


def _facts(text: str) -> JsonObject:
    found: JsonObject = {}
    for name, pattern in (("name", NAME), ("email", EMAIL), ("phone_number", PHONE)):
        if (match := pattern.search(text)) is not None:
            found[name] = match[match.lastindex or 0]
    return found


def _empty(part: JsonObject) -> JsonValue:
    empty: dict[str, JsonValue] = {"string": "", "number": 0, "integer": 0, "boolean": False, "array": [], "object": {}}
    return empty.get(str(part.get("type")))
