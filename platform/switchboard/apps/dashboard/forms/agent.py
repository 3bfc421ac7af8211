"""Convert an agent between the form, which has lines and rows, and the API's body, which has objects."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pydantic import JsonValue

from switchboard.apps.dashboard.forms.rows import list_filled_rows, parse_with_errors, rename_error_fields, split_lines
from switchboard.engine.conversation.agent_settings import (
    BUILT_IN_CLAIMS,
    NO_ARGUMENTS,
    AgentSettings,
    Claim,
    Redaction,
    TurnDetection,
    VoicemailPolicy,
)
from switchboard.engine.disclosure.settings import DisclosureSettings
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import FieldError
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.agents.models import Agent

Fields = TypeVar("Fields", bound=AgentSettings)
LISTS = ("knowledge_base_ids", "appointment_type_ids", "disabled_tools", "required_simulations")
TURN_DETECTION = tuple(f"turn_detection.{name}" for name in TurnDetection.model_fields)
VOICEMAIL = tuple(f"voicemail_policy.{name}" for name in VoicemailPolicy.model_fields)
OF_THE_FORM = (
    *LISTS,
    "pronunciations",
    "tools",
    "handoffs",
    "variables",
    "claims",
    "banned_phrases",
    "banned_topics",
    "guardrails",
    "extraction",
    "allowed_numbers",
    "disclosure",
    "redaction",
    "webhook_secret",
)
WHOLE = (
    *("pronunciations", "allowed_numbers", "appointment_type_ids", "disabled_tools", "banned_phrases"),
    *("redaction.kinds", "redaction.visible_to_model"),
    *("disclosure.presets", "disclosure.countries", "disclosure.texts"),
)
"""Fields of the form that show the errors of each of their values."""


def agent_to_form(agent: Agent) -> JsonObject:
    """Return the form's values of an agent."""
    settings, values = agent.settings, agent.list_fields()
    values["pronunciations"] = "\n".join(f"{word} = {reading}" for word, reading in settings.pronunciations.items())
    values["allowed_numbers"] = "\n".join(settings.allowed_numbers)
    values["tools"] = [
        tool.model_dump(mode="json")
        | {
            "parameters": json.dumps(tool.parameters, indent=2, ensure_ascii=False),
            "keypad_entries": _format_json([entry.model_dump() for entry in tool.keypad_entries]),
            "needs": _format_json([need.model_dump() for need in tool.needs]),
        }
        for tool in settings.tools
    ]
    values["handoffs"] = [
        handoff.model_dump(mode="json")
        | {"conditions": _format_json([condition.model_dump(mode="json") for condition in handoff.conditions])}
        for handoff in settings.handoffs
    ]
    values["variables"] = [variable.model_dump(mode="json") for variable in settings.variables]
    values["plain_claims"] = [claim.name for claim in settings.claims if _is_plain(claim)]
    values["guardrails"] = [guardrail.model_dump(mode="json") for guardrail in settings.guardrails]
    values["claims"] = [
        {"name": claim.name, "phrases": "\n".join(claim.phrases), "tools": ", ".join(claim.tools)}
        for claim in settings.claims
        if not _is_plain(claim)
    ]
    values["banned_phrases"] = "\n".join(settings.banned_phrases)
    values["banned_topics"] = "\n".join(
        f"{topic.name}: {', '.join(topic.keywords)}" if topic.keywords else topic.name
        for topic in settings.banned_topics
    )
    redaction = settings.redaction or Redaction(kinds=[])
    values["redaction"] = {**redaction.model_dump(mode="json"), "own": settings.redaction is not None}
    disclosure = (settings.disclosure or DisclosureSettings()).model_dump()
    values["disclosure"] = disclosure | {
        "countries": _format_json(disclosure["countries"]),
        "texts": _format_json({name: text for name, text in disclosure["texts"].items() if text is not None}),
    }
    schema = settings.extraction_schema
    properties, required = (schema.properties, schema.required) if schema is not None else ({}, [])
    values["extraction"] = [
        {
            "name": name,
            "type": field.type,
            "description": field.description,
            "enum": ", ".join(field.enum or []),
            "required": name in required,
        }
        for name, field in properties.items()
    ]
    return values


@contextmanager
def read_agent_form(model: type[Fields], values: Mapping[str, JsonValue], *, shows_receivers: bool) -> Iterator[Fields]:
    """Read a new agent, or an agent's update, from the form. A secret that is left empty does not change, nor do tools
    that the form did not show.

    Raises `ValidationFailed` with the form's field names, and renames errors raised within.
    """
    faults: list[FieldError] = []
    fields = {name: value for name, value in values.items() if name in model.model_fields and name not in OF_THE_FORM}
    tools, places = _tools(values, faults)
    handoffs, handoff_places = _handoffs(values, faults)
    claims, claim_places = _claims(values)
    schema, extracted = _extraction(values, faults)
    watched = list_filled_rows(values.get("guardrails"), "name", "description", "text")
    learned = list_filled_rows(values.get("variables"), "name", "description", "tool", "path")
    fields |= {
        "handoffs": handoffs,
        "variables": [row for _number, row in learned],
        "claims": claims,
        "guardrails": [row for _number, row in watched],
        "banned_phrases": split_lines(values.get("banned_phrases")),
        "banned_topics": [_topic(str(line)) for line in split_lines(values.get("banned_topics"))],
        "extraction_schema": schema,
        "pronunciations": _pronunciations(values.get("pronunciations"), faults),
        "disclosure": _disclosure(values.get("disclosure"), faults),
        "redaction": _redaction(values.get("redaction")),
    }
    if shows_receivers or tools:
        fields["tools"] = tools
    for name in set(LISTS) & model.model_fields.keys():
        chosen = values.get(name, [])
        fields[name] = _list_chosen(chosen) if isinstance(chosen, list) else chosen
    fields["allowed_numbers"] = split_lines(values.get("allowed_numbers"))
    if values.get("webhook_secret"):
        fields["webhook_secret"] = values["webhook_secret"]
    places |= (
        extracted
        | handoff_places
        | claim_places
        | {f"variables.{place}": f"variables.{number}" for place, (number, _row) in enumerate(learned)}
        | {f"guardrails.{place}": f"guardrails.{number}" for place, (number, _row) in enumerate(watched)}
        | {
            **{f"{name}.*": name for name in WHOLE},
            "banned_topics*": "banned_topics",
            **{name: name for name in (*TURN_DETECTION, *VOICEMAIL)},
            "voicemail_policy": "voicemail_policy.message",  # either message or instructions
            "turn_detection": "turn_detection.max_silence_seconds",  # the order of the two pauses
        }
    )
    data = parse_with_errors(model, fields, places, faults)
    if data.disclosure == DisclosureSettings():
        data = data.model_copy(update={"disclosure": None})
    with rename_error_fields(places):
        yield data


def _pronunciations(text: JsonValue, faults: list[FieldError]) -> JsonValue:
    """Parse one `word = pronunciation` per line, such as `Siobhan = Shivawn`."""
    found: JsonObject = {}
    for number, line in enumerate(str(text or "").splitlines(), 1):
        word, sign, reading = (part.strip() for part in line.partition("="))
        if sign and word and reading:
            found[word] = reading
        elif line.strip():
            message = _("Line %(number)s: write word = pronunciation.", number=number)
            faults.append(FieldError(field="pronunciations", message=message))
    return found


def _tools(values: Mapping[str, JsonValue], faults: list[FieldError]) -> tuple[list[JsonValue], dict[str, str]]:
    tools: list[JsonValue] = []
    places = {}
    for number, row in list_filled_rows(values.get("tools"), "name", "description", "url"):
        places[f"tools.{len(tools)}"] = f"tools.{number}"
        parameters = _json(row.get("parameters"), faults, field=f"tools.{number}.parameters", empty=NO_ARGUMENTS)
        entries = _json(row.get("keypad_entries"), faults, field=f"tools.{number}.keypad_entries", empty=[])
        needs = _json(row.get("needs"), faults, field=f"tools.{number}.needs", empty=[])
        tools.append({**row, "parameters": parameters, "keypad_entries": entries, "needs": needs})
    return tools, places


def _handoffs(values: Mapping[str, JsonValue], faults: list[FieldError]) -> tuple[list[JsonValue], dict[str, str]]:
    handoffs: list[JsonValue] = []
    places = dict[str, str]()
    for number, row in list_filled_rows(values.get("handoffs"), "agent_id"):
        here, field = f"handoffs.{len(handoffs)}", f"handoffs.{number}"
        places |= {f"{here}.conditions*": f"{field}.conditions", here: field}
        conditions = _json(row.get("conditions"), faults, field=f"{field}.conditions", empty=[])
        handoffs.append({**row, "conditions": conditions})
    return handoffs, places


def _is_plain(claim: Claim) -> bool:
    """Return whether a claim is a built-in one without phrases and tools of its own, which the form only ticks."""
    return claim.name in BUILT_IN_CLAIMS and not claim.phrases and not claim.tools


def _claims(values: Mapping[str, JsonValue]) -> tuple[list[JsonValue], dict[str, str]]:
    """Return the claims that are ticked, and those of the rows."""
    claims: list[JsonValue] = [{"name": name} for name in _list_chosen(values.get("plain_claims"))]
    places = {f"claims.{place}": "plain_claims" for place in range(len(claims))}
    for number, row in list_filled_rows(values.get("claims"), "name", "phrases", "tools"):
        places[f"claims.{len(claims)}"] = f"claims.{number}"
        tools: list[JsonValue] = [tool.strip() for tool in str(row.get("tools") or "").split(",") if tool.strip()]
        claims.append({"name": row.get("name"), "phrases": split_lines(row.get("phrases")), "tools": tools})
    return claims, places | {"claims": "plain_claims"}


def _topic(line: str) -> JsonValue:
    """Read a topic with its words: `legal advice: lawsuit, court`."""
    name, _sign, words = line.partition(":")
    return {"name": name.strip(), "keywords": [word.strip() for word in words.split(",") if word.strip()]}


def _disclosure(values: JsonValue, faults: list[FieldError]) -> JsonValue:
    fields = dict(values) if isinstance(values, dict) else {}
    for name in ("countries", "texts"):
        fields[name] = _json(fields.get(name), faults, field=f"disclosure.{name}", empty={})
    fields["presets"] = _list_chosen(fields.get("presets"))
    return fields


def _redaction(values: JsonValue) -> JsonValue:
    """Return the agent's own settings, or None for the organization's. A chosen kind is a setting of its own."""
    fields = values if isinstance(values, dict) else {}
    chosen: JsonObject = {name: _list_chosen(fields.get(name)) for name in ("kinds", "visible_to_model")}
    return chosen if fields.get("own") == "true" or chosen["kinds"] else None


def _list_chosen(values: JsonValue) -> list[JsonValue]:
    return [value for value in values if value] if isinstance(values, list) else []


def _format_json(value: JsonValue) -> str:
    """Return JSON for a text field; an empty object is an empty field."""
    return json.dumps(value, indent=2, ensure_ascii=False) if value else ""


def _json(text: JsonValue, faults: list[FieldError], *, field: str, empty: JsonValue) -> JsonValue:
    if not str(text or "").strip():
        return empty
    try:
        value: JsonValue = json.loads(str(text))
    except json.JSONDecodeError as error:
        parse_error = f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        parse_error = "too deep"
    else:
        return value
    faults.append(FieldError(field=field, message=_("This is not JSON: %(parse_error)s.", parse_error=parse_error)))
    return empty


def _extraction(values: Mapping[str, JsonValue], faults: list[FieldError]) -> tuple[JsonValue, dict[str, str]]:
    properties: dict[str, JsonObject] = {}
    required: list[JsonValue] = []
    places = {"extraction_schema.properties": "extraction"}
    for number, row in list_filled_rows(values.get("extraction"), "name", "description", "enum"):
        name = str(row.get("name", "")).strip()
        if name in properties:
            message = _("%(name)s is a duplicate.", name=name)
            faults.append(FieldError(field=f"extraction.{number}.name", message=message))
        places[f"extraction_schema.properties.{name}"] = f"extraction.{number}"
        properties[name] = {"type": row.get("type", "string"), "description": row.get("description", "")}
        if choices := [choice.strip() for choice in str(row.get("enum") or "").split(",") if choice.strip()]:
            properties[name] |= {"enum": [*choices]}
        if row.get("required") == "true":
            required.append(name)
    schema: JsonValue = {"properties": {**properties}, "required": required} if properties else None
    return schema, places
