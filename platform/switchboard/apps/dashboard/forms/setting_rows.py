"""Settings of a provider that are lists of objects, such as the trunks of a carrier: one fieldset of a form per object.

Secrets that a dict of the settings holds by row (`ask_with_rows` of the plugin SDK) are fields of their rows. A stored
secret is never shown; an empty field keeps it, also when the row's key changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args, get_origin

from pydantic import BaseModel, JsonValue

from switchboard.apps.dashboard.forms import schema_form
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.forms.rows import list_rows
from switchboard.apps.dashboard.forms.schema_form import SchemaField
from switchboard.engine.providers.configuration import find_secret_settings
from switchboard.foundation.languages import gettext
from switchboard.foundation.web.errors import FieldError
from switchboard.plugin_sdk import JsonObject

BEFORE: Final = "before"
"""Hidden field of a row: its key as stored."""


@dataclass(frozen=True, slots=True)
class RowsSetting:
    """A setting that is a list of objects. `key` names a row's field by which `secrets` of other settings belong to it.

    The name of a secret's field is that of the setting that holds it. The field `before_secrets` precedes them.
    """

    name: str
    label: str
    hint: str
    title: str
    fields: Sequence[SchemaField]
    key: str = ""
    secrets: Sequence[SchemaField] = ()
    before_secrets: str = ""

    @property
    def first_fields(self) -> list[SchemaField]:
        """The fields that each row needs, and its secrets."""
        return [*(field for field in self.fields if self._is_first(field)), *self.secrets]

    @property
    def other_fields(self) -> list[SchemaField]:
        return [field for field in self.fields if not self._is_first(field)]

    def has_others(self, form: Form, place: str) -> bool:
        """Return whether a row of the form has a value or an error in one of the other fields."""
        return any(form.value(place + field.name) or form.error(place + field.name) for field in self.other_fields)

    def _is_first(self, field: SchemaField) -> bool:
        return field.required or field.name == self.before_secrets


def list_rows_settings(model: type[BaseModel]) -> list[RowsSetting]:
    """Return the model's settings that are lists of objects without secrets of their own."""
    secret, found = find_secret_settings(model), []
    for field in schema_form.list_schema_fields(model):
        row = _find_row_model(model, field.name)
        if row is None or field.name in secret:
            continue
        title = gettext(str(row.model_config.get("title") or row.__name__))
        setting = RowsSetting(field.name, field.label, field.hint, title, schema_form.list_schema_fields(row))
        found.append(_add_secrets(setting, model))
    return found


def list_plain_fields(model: type[BaseModel]) -> list[SchemaField]:
    """Return the fields that are neither lists of objects nor parts of one."""
    rows = list_rows_settings(model)
    elsewhere = {setting.name for setting in rows} | {field.name for setting in rows for field in setting.secrets}
    return [field for field in schema_form.list_schema_fields(model) if field.name not in elsewhere]


def _find_row_model(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    field = model.model_fields.get(name)
    inner = get_args(field.annotation)[0] if field and get_origin(field.annotation) is list else None
    return inner if isinstance(inner, type) and issubclass(inner, BaseModel) else None


def _add_secrets(setting: RowsSetting, model: type[BaseModel]) -> RowsSetting:
    for field in schema_form.list_schema_fields(model):
        extra = model.model_fields[field.name].json_schema_extra
        link = extra.get("secrets_of_rows") if isinstance(extra, dict) else None
        if isinstance(link, dict) and link.get("rows") == setting.name:
            label = gettext(str(link["label"]))
            secret = replace(field, kind="text", secret=True, required=False, label=label, hint="")
            before = str(link["after"])
            setting = replace(setting, key=str(link["key"]), secrets=[*setting.secrets, secret], before_secrets=before)
    return setting


def rows_to_form(settings: Sequence[RowsSetting], values: Mapping[str, JsonValue]) -> JsonObject:
    """Return stored rows as the form shows them."""
    return {
        setting.name: [
            {**schema_form.values_to_form(setting.fields, row), BEFORE: row.get(setting.key)}
            for row in list_rows(values.get(setting.name))
        ]
        for setting in settings
    }


def list_labels(
    fields: Sequence[SchemaField], settings: Sequence[RowsSetting], form: Form, *, prefix: str
) -> dict[str, str]:
    """Return the labels of all fields of a form by their names. Those within a row have the row's title and number."""
    labels = {prefix + field.name: field.label for field in fields}
    for setting in settings:
        name, own = prefix + setting.name, (*setting.fields, *setting.secrets)
        labels |= {name: setting.label, **{prefix + secret.name: secret.label for secret in setting.secrets}}
        labels |= {
            f"{name}.{number}.{field.name}": f"{setting.title} {number + 1}, {field.label}"
            for number in range(len(list_rows(form.value(name))))
            for field in own
        }
    return labels


def read_rows(
    settings: Sequence[RowsSetting], texts: Mapping[str, JsonValue], *, prefix: str, locked: frozenset[str]
) -> tuple[JsonObject, dict[str, Mapping[str, str] | None], list[FieldError]]:
    """Return the typed rows, the secrets that stay, and the errors. Of `locked` settings, only the secrets are read.
    Empty rows at the end are left out.

    The secrets that stay are the stored keys by setting and key; None if every secret that was not typed stays.
    """
    values: JsonObject = {}
    kept: dict[str, Mapping[str, str] | None] = {}
    faults: list[FieldError] = []
    for setting in settings:
        rows, is_locked = list_rows(texts.get(setting.name)), setting.name in locked
        while rows and not any(str(text or "").strip() for text in rows[-1].values()):
            rows.pop()
        if not is_locked:
            places = [f"{prefix}{setting.name}.{number}." for number in range(len(rows))]
            read = [schema_form.read_form_values(setting.fields, *each) for each in zip(rows, places, strict=True)]
            values[setting.name] = [row for row, _ in read]
            faults += [fault for _, wrong in read for fault in wrong]
        keys = [str(row.get(BEFORE if is_locked else setting.key) or "").strip() for row in rows]
        for secret in setting.secrets:
            values[secret.name] = {
                key: row[secret.name] for key, row in zip(keys, rows, strict=True) if row.get(secret.name)
            }
            stay = {key: str(row.get(BEFORE)) for key, row in zip(keys, rows, strict=True) if row.get(BEFORE)}
            kept[secret.name] = None if is_locked else stay
    return values, kept, faults


def place_errors(
    settings: Sequence[RowsSetting], problems: Sequence[tuple[str, str]], values: Mapping[str, JsonValue], prefix: str
) -> list[FieldError]:
    """Return errors at dotted keys, such as `headers.X-Name`, as one error for each form field.

    An error within a row is at the row's field, and names the row and the field.
    """
    by_name = {setting.name: setting for setting in settings}
    messages_by_field: dict[str, list[str]] = {}
    for place, message in problems:
        name, _, within = place.partition(".")
        number, _, inner = within.partition(".")
        if name in by_name and number.isdecimal():
            field, named = _place_in_row(by_name[name], int(number), inner, list_rows(values.get(name)))
            messages_by_field.setdefault(field, []).append(f"{named}{message}")
        else:
            messages_by_field.setdefault(name, []).append(f"{within}: {message}" if within else message)
    return [{"field": prefix + name, "message": "; ".join(messages)} for name, messages in messages_by_field.items()]


def _place_in_row(setting: RowsSetting, number: int, inner: str, rows: list[JsonObject]) -> tuple[str, str]:
    """Return the form field of an error within a row, and the beginning of its message."""
    name, _, _ = inner.partition(".")
    field = next((each for each in setting.fields if each.name == name), setting.fields[0])
    key = str(rows[number].get(setting.key, "")) if number < len(rows) else ""
    return f"{setting.name}.{number}.{field.name}", f"{key}: " if key else ""
