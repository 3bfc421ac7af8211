"""Convert an automation between the builder's form and the API's body: event fields, rows, and typed text as JSON."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final

from pydantic import JsonValue

from switchboard.apps.dashboard.forms import schema_form
from switchboard.apps.dashboard.forms.form import parse_form
from switchboard.apps.dashboard.forms.plugin_texts import describe_action
from switchboard.apps.dashboard.forms.rows import change_rows, list_rows
from switchboard.apps.dashboard.forms.schema_form import Options, SchemaField
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import FieldError, ValidationFailed
from switchboard.foundation.web.principal import Principal
from switchboard.plugin_sdk import JsonObject
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations.conditions import ROOTS
from switchboard.resources.automations.models import Automation
from switchboard.resources.automations.schemas import Action, AutomationCreate

PLAIN: Final = {"name", "description", "enabled", "trigger_type"}
LISTS: Final = ("filters", "conditions", "actions")
OPERATORS: Final = (
    ("eq", LazyText("is")),
    ("neq", LazyText("is not")),
    ("contains", LazyText("contains")),
    ("gt", LazyText("is more than")),
    ("gte", LazyText("is at least")),
    ("lt", LazyText("is less than")),
    ("lte", LazyText("is at most")),
    ("in", LazyText("is one of")),
    ("not_in", LazyText("is not one of")),
    ("exists", LazyText("exists")),
    ("not_exists", LazyText("does not exist")),
)
OF_LISTS: Final = ("in", "not_in")
WITHOUT_VALUE: Final = ("exists", "not_exists")


@cache
def get_event_fields(event: str) -> Mapping[str, bool]:
    """Return the paths of the fields of an event that conditions and templates can use, each with whether its value is
    always a string; none for an unknown event.
    """
    if event not in CATALOG:
        return {}
    schema = CATALOG[event].model_json_schema()
    return {
        **dict(_iterate_fields("data", schema, schema.get("$defs", {}))),
        **{root: True for root in ROOTS if root != "data"},
    }


def _iterate_fields(path: str, schema: JsonObject, definitions: Mapping[str, JsonObject]) -> Iterator[tuple[str, bool]]:
    """Yield the fields below a path. The first item of a list stands for all items."""
    part = schema_form.resolve_schema(schema, definitions)
    properties, items = part.get("properties"), part.get("items")
    if isinstance(properties, dict):
        for name, inner in properties.items():
            if isinstance(inner, dict):
                yield from _iterate_fields(f"{path}.{name}", inner, definitions)
    elif isinstance(items, dict):
        yield from _iterate_fields(f"{path}.0", items, definitions)
    else:
        yield path, part.get("type") == "string"


def automation_to_form(automation: Automation, kinds: "ActionTypes") -> JsonObject:
    """Return the form's values of an automation."""
    is_text = partial(_is_text, automation.trigger_type)
    filters: list[JsonValue] = [
        {"field": path, "value": _shown_value(value, is_text(path))}
        for path, value in automation.trigger_filters.items()
    ]
    conditions: list[JsonValue] = [
        {
            **condition,
            "value": _shown_operand(condition.get("value"), condition["operator"], is_text(condition["field"])),
        }
        for condition in automation.conditions
    ]
    actions: list[JsonValue] = [kinds.show(Action.model_validate(action)) for action in automation.actions]
    return {
        **automation.model_dump(include=PLAIN),
        "filters": filters,
        "conditions": conditions,
        "actions": actions,
    }


class ActionTypes:
    """The action types with their fields.

    `choices` holds the options of id fields, by field name. `reasons` has, for each action that the organization cannot
    use, the reason.
    """

    def __init__(self, registry: Registry, choices: Mapping[str, Options], reasons: Mapping[str, str]) -> None:
        self.reasons = reasons
        self.scopes = {kind.name: kind.scope for kind in registry.actions}
        self.titles = {kind.name: _(kind.title) for kind in registry.actions}
        self.about = {kind.name: _(describe_action(kind)) for kind in registry.actions}
        self.fields = {
            kind.name: schema_form.list_schema_fields(kind.Params, choices=choices) for kind in registry.actions
        }

    def list_offered(self, principal: Principal) -> dict[str, str]:
        """Return the titles of the actions that a user can add, by their names."""
        return {
            name: title
            for name, title in self.titles.items()
            if name not in self.reasons and (self.scopes[name] is None or self.scopes[name] in principal.scopes)
        }

    def fields_of(self, name: object) -> list[SchemaField]:
        """Return an action's fields; none if its plugin is not installed."""
        return self.fields.get(str(name), [])

    def show(self, action: Action) -> JsonObject:
        """Return an action's row. The parameters of an action without a plugin are kept in a hidden field."""
        return {
            "type": action.type,
            "params": schema_form.values_to_form(self.fields_of(action.type), action.params),
            "kept": "" if action.type in self.fields else json.dumps(action.params),
        }


def drop_empty_rows(values: Mapping[str, JsonValue]) -> JsonObject:
    """Return the form's values without empty rows."""
    clean = dict(values)
    for name in LISTS:
        rows = list_rows(clean.get(name))
        clean[name] = [row for row in rows if name == "actions" or row.get("field") or row.get("value")]
    return clean


def apply_row_change(values: Mapping[str, JsonValue]) -> JsonObject:
    """Apply a button to the form's values: `add:conditions`, or one of `change_rows`. Ignore other buttons."""
    after = dict(values)
    button = str(after.pop("change", ""))
    verb, _, name = button.partition(":")
    if verb != "add" or name not in LISTS:
        return change_rows(after, button, LISTS)
    row: JsonObject = {"field": "", "operator": "eq", "value": ""}
    if name == "actions":
        row = {"type": after.get("new_action"), "params": {}}
    return {**after, name: [*list_rows(after.get(name)), row]}


def read_automation_form(values: Mapping[str, JsonValue], kinds: ActionTypes) -> AutomationCreate:
    """Read the automation from the form's values. Raises `ValidationFailed` with the form's field names."""
    event = str(values.get("trigger_type", ""))
    faults: list[FieldError] = []
    filters, actions = list_rows(values.get("filters")), list_rows(values.get("actions"))
    given: JsonObject = {name: values.get(name) for name in PLAIN}
    given["trigger_filters"] = {
        str(row.get("field", "")): _value(row, event, faults, f"filters.{n}") for n, row in enumerate(filters)
    }
    given["conditions"] = [
        _condition(row, event, faults, f"conditions.{n}") for n, row in enumerate(list_rows(values.get("conditions")))
    ]
    given["actions"] = [_action(row, kinds, faults, f"actions.{n}.params.") for n, row in enumerate(actions)]
    paths = [str(row.get("field", "")) for row in filters]
    faults += [
        {"field": f"filters.{n}.field", "message": _("is a duplicate")}
        for n, path in enumerate(paths)
        if path in paths[:n]
    ]
    try:
        automation = parse_form(AutomationCreate, given)
    except ValidationFailed as error:
        faults += move_errors_to_fields(error.errors, paths)
    if faults:
        raise ValidationFailed(_("Some fields are not valid."), errors=faults)
    return automation


def move_errors_to_fields(errors: Sequence[FieldError], filters: Sequence[str]) -> list[FieldError]:
    """Move errors to the form's fields: an error within a parameter to that parameter, a filter's error to its row."""
    messages_by_field: dict[str, str] = {}
    for error in errors:
        parts, message = error["field"].split("."), error["message"]
        field = error["field"]
        if parts[0] == "trigger_filters":
            row = next((n for n, path in enumerate(filters) if repr(path) in message or field.endswith(path)), 0)
            field = f"filters.{row}.field"
        elif len(parts) > 4 and parts[0] == "actions":
            field, message = ".".join(parts[:4]), f"{'.'.join(parts[4:])}: {message}"
        messages_by_field[field] = f"{messages_by_field[field]}; {message}" if field in messages_by_field else message
    return [{"field": field, "message": message} for field, message in messages_by_field.items()]


def _action(row: JsonObject, kinds: ActionTypes, faults: list[FieldError], prefix: str) -> JsonValue:
    texts = row.get("params")
    params, unreadable = schema_form.read_form_values(
        kinds.fields_of(row.get("type")), texts if isinstance(texts, dict) else {}, prefix=prefix
    )
    faults += unreadable
    return {"type": row.get("type") or "", "params": params}


def _condition(row: JsonObject, event: str, faults: list[FieldError], place: str) -> JsonValue:
    operator = str(row.get("operator", ""))
    condition: JsonObject = {"field": row.get("field", ""), "operator": operator}
    if operator not in WITHOUT_VALUE:
        condition["value"] = _value(row, event, faults, place, of_list=operator in OF_LISTS)
    return condition


def _value(row: JsonObject, event: str, faults: list[FieldError], place: str, *, of_list: bool = False) -> JsonValue:
    typed, is_text = str(row.get("value", "")).strip(), _is_text(event, str(row.get("field", "")))
    try:
        return _read_list(typed, is_text) if of_list else _read_value(typed, is_text)
    except ValueError as error:
        faults.append({"field": f"{place}.value", "message": str(error)})
        return None


def _is_text(event: str, path: str) -> bool:
    """Return whether the value at a path of an event is always a string."""
    place = ".".join("0" if part.isdecimal() else part for part in path.split("."))
    return get_event_fields(event).get(place, False)


def _read_value(typed: str, is_text: bool) -> JsonValue:
    """Read typed text as JSON if possible. For a string field, only text in quotes, brackets, or braces is JSON."""
    if not typed or typed == "null":
        return None
    if not is_text:
        return schema_form.parse_json_or_text(typed)
    try:
        return schema_form.parse_json_or_text(typed) if typed.startswith(('"', "[", "{")) else typed
    except ValueError:
        return typed


def _read_list(typed: str, is_text: bool) -> JsonValue:
    if typed.startswith("["):
        return schema_form.parse_json_or_text(typed)
    return [_read_value(item.strip(), is_text) for item in typed.split(",") if item.strip()]


def _shown_value(value: JsonValue, is_text: bool) -> str:
    plain = "" if value is None else value if isinstance(value, str) else _json(value)
    return plain if _reads_as(_read_value, plain, is_text, value) else _json(value)


def _shown_operand(value: JsonValue, operator: str, is_text: bool) -> str:
    if operator not in OF_LISTS or not isinstance(value, list):
        return _shown_value(value, is_text)
    plain = ", ".join(_shown_value(item, is_text) for item in value)
    return plain if _reads_as(_read_list, plain, is_text, value) else _json(value)


def _reads_as(reader: Callable[[str, bool], JsonValue], typed: str, is_text: bool, value: JsonValue) -> bool:
    try:
        return typed == typed.strip() and reader(typed, is_text) == value
    except ValueError:
        return False


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
