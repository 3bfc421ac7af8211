"""Differences between two versions of an agent by field; long texts by line, changed lines by word."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from switchboard.apps.dashboard.ui.rendering import field_name
from switchboard.engine.conversation.agent_settings import AgentSettings
from switchboard.foundation.languages import LazyText

_NAMES: Final = {
    "name": LazyText("Name"),
    "greeting_message": LazyText("Greeting"),
    "system_prompt": LazyText("Prompt"),
    "status": LazyText("Status"),
    "llm_provider": LazyText("Model provider"),
    "llm_model": LazyText("Model"),
    "llm_temperature": LazyText("Temperature"),
    "tts_provider": LazyText("Voice provider"),
    "tts_voice_id": LazyText("Voice"),
    "tts_model": LazyText("Voice model"),
    "voice_speed": LazyText("Speed"),
    "pronunciations": LazyText("Pronunciations"),
    "stt_provider": LazyText("Transcription provider"),
    "stt_model": LazyText("Transcription model"),
    "stt_language": LazyText("Language"),
    "vad_confidence": LazyText("Confidence"),
    "vad_start_secs": LazyText("Speech duration"),
    "vad_min_volume": LazyText("Volume"),
    "allow_interruptions": LazyText("Callers can interrupt"),
    "interruption_min_words": LazyText("Words needed to interrupt"),
    "turn_detection": LazyText("Ends of turns"),
    "voicemail_policy": LazyText("Voicemail"),
    "end_call_silence_seconds": LazyText("Seconds of silence"),
    "queue_wait_seconds": LazyText("Longest wait for a person"),
    "queue_fallback": LazyText("If no person answers"),
    "max_call_duration_seconds": LazyText("Maximum duration"),
    "timezone": LazyText("Time zone"),
    "knowledge_base_ids": LazyText("Knowledge"),
    "appointment_type_ids": LazyText("Appointments"),
    "tools": LazyText("Tools"),
    "handoffs": LazyText("Hand-offs"),
    "variables": LazyText("Variables"),
    "claims": LazyText("Only if it is true"),
    "banned_phrases": LazyText("Phrases that it never says"),
    "banned_topics": LazyText("Subjects that it does not talk about"),
    "guardrails": LazyText("Guardrails"),
    "check_model": LazyText("Model for checks"),
    "disabled_tools": LazyText("Tools switched off"),
    "allowed_numbers": LazyText("Phone numbers that the agent may use"),
    "any_number": LazyText("Any phone number"),
    "extraction_schema": LazyText("After the call"),
    "redaction": LazyText("Private data"),
    "disclosure": LazyText("Notice and consent"),
    "webhook_url": LazyText("Webhook"),
    "required_simulations": LazyText("Required simulations"),
}
"""Names of fields in words, in the order of the form."""
AROUND: Final = 2
MOST_LINES: Final = 3000
"""Longer texts are shown as removed and added lines: comparing takes time in proportion to their product."""
SHORT: Final = 80

Word: TypeAlias = tuple[str, bool]
"""A piece of a line, and whether it changed."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a changed text; `gap` stands for unchanged lines."""

    kind: Literal["same", "gone", "new", "gap"]
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A changed field: `old` and `new` for short values, `lines` for long ones."""

    name: str
    old: str = ""
    new: str = ""
    lines: tuple[Line, ...] = ()


def _name_fields() -> dict[str, str]:
    """Return the names of all fields that versions have: a setting without a name of its own has the API's."""
    return {field: _NAMES.get(field) or field_name(field) for field in (*_NAMES, *AgentSettings.model_fields)}


def list_changed_fields(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> list[str]:
    """Return the names of the changed fields. A field that one version lacks does not count, nor does a field whose
    lines differ only in their line ends.
    """
    return [name for field, name in _name_fields().items() if _is_changed(field, old, new)]


def compare_settings(
    old: Mapping[str, JsonValue], new: Mapping[str, JsonValue], names: Mapping[str, str]
) -> list[Change]:
    """Return the changed fields. `names` holds those of what agents refer to, by id."""
    found = []
    for field, name in _name_fields().items():
        if _is_changed(field, old, new):
            before, after = _format_value(field, old[field], names), _format_value(field, new[field], names)
            is_short = max(len(before), len(after)) <= SHORT and "\n" not in before + after
            found.append(Change(name, before, after) if is_short else Change(name, lines=tuple(_lines(before, after))))
    return found


def _is_changed(field: str, old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> bool:
    if field not in old or field not in new:
        return False
    before, after = (
        value.replace("\r\n", "\n") if isinstance(value, str) else value for value in (old[field], new[field])
    )
    return before != after


def _format_value(field: str, value: JsonValue, names: Mapping[str, str]) -> str:
    if field in ("knowledge_base_ids", "appointment_type_ids") and isinstance(value, list):
        return "\n".join(names.get(str(key), f"deleted ({key})") for key in value)
    if field == "handoffs" and isinstance(value, list):
        value = [each | {"agent_id": names.get(str(each["agent_id"]), "")} for each in value if isinstance(each, dict)]
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return "\n".join(f"{name} = {part}" for name, part in value.items())
    if isinstance(value, dict | list):
        return json.dumps(value, indent=2, ensure_ascii=False) if value else ""
    return "" if value is None else str(value)


def _lines(before: str, after: str) -> Iterator[Line]:
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_LINES:
        yield from (_plain("gone", line) for line in old)
        yield from (_plain("new", line) for line in new)
        return
    end = 0
    for group in SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(AROUND):
        if group[0][1] > end:
            yield Line("gap", ())
        end = group[-1][2]
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (_plain("same", line) for line in old[old_from:old_to])
            else:
                yield from _replace_lines(old[old_from:old_to], new[new_from:new_to])
    if end < len(old):
        yield Line("gap", ())


def _plain(kind: Literal["same", "gone", "new"], text: str) -> Line:
    return Line(kind, ((text, False),))


def _replace_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    if len(old) != len(new):
        yield from (_plain("gone", line) for line in old)
        yield from (_plain("new", line) for line in new)
        return
    pairs = [_mark_changes(before, after) for before, after in zip(old, new, strict=True)]
    yield from (Line("gone", words) for words, _ in pairs)
    yield from (Line("new", words) for _, words in pairs)


def _mark_changes(before: str, after: str) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    old, new = re.findall(r"\s+|\w+|[^\w\s]", before), re.findall(r"\s+|\w+|[^\w\s]", after)
    if len(old) + len(new) > MOST_LINES:
        return ((before, True),), ((after, True),)
    gone, fresh = list[Word](), list[Word]()
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        gone.append(("".join(old[old_from:old_to]), tag != "equal"))
        fresh.append(("".join(new[new_from:new_to]), tag != "equal"))
    return tuple(word for word in gone if word[0]), tuple(word for word in fresh if word[0])
