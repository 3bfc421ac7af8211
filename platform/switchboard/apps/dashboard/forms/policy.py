"""The form of an organization's policy: a group of fields for each table of a tenant file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, JsonValue, ValidationError

from switchboard.apps.dashboard.forms import schema_form
from switchboard.apps.dashboard.forms.form import find_inner_model
from switchboard.apps.dashboard.forms.schema_form import SchemaField, make_label
from switchboard.foundation.languages import gettext
from switchboard.foundation.web.errors import FieldError, ValidationFailed
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.identity.policy import Policy

PREFIX: Final = "policy."


@dataclass(frozen=True, slots=True)
class PolicyGroup:
    """A table of the policy: its dotted path, empty for the keys outside of tables, and its fields."""

    path: str
    title: str
    about: str
    fields: Sequence[SchemaField]

    @property
    def prefix(self) -> str:
        """The beginning of the names of the group's form fields."""
        return f"{PREFIX}{self.path}." if self.path else PREFIX


def list_policy_groups() -> list[PolicyGroup]:
    """Return the groups in the order of the policy, after the keys outside of tables."""
    tables = _list_tables(Policy, "")
    inside = {path.partition(".")[0] for path, _ in tables}
    plain = [field for field in schema_form.list_schema_fields(Policy) if field.name not in inside]
    groups = [PolicyGroup("", gettext("Limits and billing"), "", plain)]
    for path, model in tables:
        fields = schema_form.list_schema_fields(model)
        groups.append(
            PolicyGroup(path, gettext(make_label(path.replace(".", "_"))), gettext(str(model.__doc__)), fields)
        )
    return groups


def policy_to_form(policy: Policy) -> JsonObject:
    """Return a policy as the form shows it, by group and field."""
    stored = policy.model_dump(mode="json")
    shown: JsonObject = {}
    for group in list_policy_groups():
        _find_table(shown, group.path).update(schema_form.values_to_form(group.fields, _find_table(stored, group.path)))
    return shown


def read_policy(typed: Mapping[str, JsonValue]) -> Policy:
    """Read the form. An empty field has its default, and a table without any typed field is left out.

    Raises `ValidationFailed` with the names of form fields.
    """
    values: JsonObject = {}
    faults: list[FieldError] = []
    texts = dict(typed)
    for group in list_policy_groups():
        read, wrong = schema_form.read_form_values(group.fields, _find_table(texts, group.path), prefix=group.prefix)
        faults += wrong
        if read:
            _find_table(values, group.path).update(read)
    if faults:
        raise ValidationFailed(gettext("Some settings are not valid."), errors=faults)
    try:
        return Policy.model_validate(values)
    except ValidationError as error:
        found = [(".".join(map(str, item["loc"])), item["msg"]) for item in error.errors(include_url=False)]
        raise refuse_policy(found) from None


def refuse_policy(faults: Sequence[tuple[str, str]]) -> ValidationFailed:
    """Return the refusal of a policy with faults at dotted keys, each at the form field that holds the key."""
    names = [f"{group.prefix}{field.name}" for group in list_policy_groups() for field in group.fields]
    errors: list[FieldError] = []
    for key, message in faults:
        place = next((name for name in names if f"{PREFIX}{key}.".startswith(f"{name}.")), f"{PREFIX}{key}")
        errors.append({"field": place, "message": message.removeprefix("Value error, ")})
    return ValidationFailed(gettext("Some settings are not valid."), errors=errors)


def _list_tables(model: type[BaseModel], path: str) -> list[tuple[str, type[BaseModel]]]:
    """Return path and model of each table. A table that has only tables, such as the rate limits, is their prefix."""
    tables = []
    for name, field in model.model_fields.items():
        inner = find_inner_model(field.annotation)
        if inner is None:
            continue
        place = f"{path}{name}"
        nested = _list_tables(inner, f"{place}.")
        tables += nested if len(nested) == len(inner.model_fields) else [(place, inner)]
    return tables


def _find_table(values: JsonObject, path: str) -> JsonObject:
    """Return the table at a dotted path. A missing one is added."""
    here = values
    for part in filter(None, path.split(".")):
        inner = here.get(part)
        if not isinstance(inner, dict):
            inner = here[part] = {}
        here = inner
    return here
