"""Submitted forms, parsed into the same pydantic models as the API's bodies, and shown again with their errors.

Names describe the shape: `slots.0.start` is the start of the first of `slots`; a name that ends with `[]` is a list of
all its values. Of several fields with one name the last counts, so that a hidden `false` can precede a checkbox. An
empty string is null if the model accepts null. Otherwise it is left out if the field has a default other than the empty
string.
"""

import re
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, TypeAlias, TypeVar, get_args

from pydantic import BaseModel, JsonValue, ValidationError
from werkzeug.datastructures import FileStorage, MultiDict

from switchboard.foundation.conditions import look_up
from switchboard.foundation.languages import LazyText, gettext
from switchboard.foundation.web.errors import FieldError, ValidationFailed
from switchboard.plugin_sdk import JsonObject

Model = TypeVar("Model", bound=BaseModel)
Files: TypeAlias = MultiDict[str, FileStorage]
"""Uploaded files by the name of their field."""
OWN = ("csrf_token",)
WORDS = {
    "missing": LazyText("is required"),
    "string_too_short": LazyText("must have at least {min_length} characters"),
    "string_too_long": LazyText("must have at most {max_length:,} characters"),
    "int_parsing": LazyText("must be a whole number"),
    "int_from_float": LazyText("must be a whole number"),
    "float_parsing": LazyText("must be a number"),
    "decimal_parsing": LazyText("must be a number"),
    "greater_than_equal": LazyText("must be at least {ge}"),
    "less_than_equal": LazyText("must be at most {le}"),
    "literal_error": LazyText("must be {expected}"),
    "too_short": LazyText("needs at least {min_length}"),
    "too_long": LazyText("can have at most {max_length}"),
}
"""Messages for pydantic's error types. `{…}` is filled in from the error's context."""


class Form:
    """A form as a page shows it: the submitted or stored values, and the errors by field."""

    def __init__(
        self, values: Mapping[str, JsonValue] | None = None, *, errors: Sequence[FieldError] = (), message: str = ""
    ) -> None:
        self.values = dict(values or {})
        self.errors = {error["field"]: gettext(error["message"]) for error in errors}
        self.message = gettext(message)
        self.was_sent = bool(errors or message)
        self._labels: Mapping[str, str] = {}

    def starting_with(self, values: Mapping[str, JsonValue]) -> "Form":
        """Show these values unless the form was submitted."""
        if not self.was_sent:
            self.values = dict(values)
        return self

    def with_labels(self, labels: Mapping[str, str]) -> "Form":
        """Name the fields, by their dotted names, as the page does."""
        self._labels = labels
        return self

    def label(self, name: str) -> str:
        """Return the label of a field; empty if the page gave none."""
        return self._labels.get(name, "")

    def value(self, name: str, default: JsonValue = None) -> JsonValue:
        """Return the value of a field by its dotted name."""
        found = look_up(self.values, name)
        return default if found is None else found

    def error(self, name: str) -> str:
        """Return the error of a field; empty if it has none."""
        return self.errors.get(name, "")


def nest_fields(fields: "MultiDict[str, str]") -> JsonObject:
    """Turn a form's flat fields into the object that their names describe.

    A NUL, which PostgreSQL cannot store, becomes U+FFFD, as in HTML (13.2.5). A line ends with LF, as in the API:
    browsers send CR LF, as its algorithm of form submission says.
    """
    root: JsonObject = {}
    for sent, given in fields.lists():
        name, *values = (text.replace("\0", "\ufffd").replace("\r\n", "\n") for text in (sent, *given))
        if name not in OWN:
            _put(root, name.removesuffix("[]").split("."), list(values) if name.endswith("[]") else values[-1])
    return {name: _turn_into_lists(value) for name, value in root.items()}


def _put(target: JsonObject, path: list[str], value: JsonValue) -> None:
    for part in path[:-1]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        target = inner
    target[path[-1]] = value


def _turn_into_lists(value: JsonValue) -> JsonValue:
    """Turn objects whose keys are all numbers into lists, in order. Gaps left by removed rows close."""
    if not isinstance(value, dict):
        return value
    inner = {key: _turn_into_lists(item) for key, item in value.items()}
    if inner and all(re.fullmatch(r"\d{1,4}", key) for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def parse_form(model: type[Model], values: Mapping[str, JsonValue]) -> Model:
    """Parse a form's strings into a model. Raises `ValidationFailed`."""
    try:
        return model.model_validate(_without_blanks(model, values), strict=False)
    except ValidationError as error:
        raise _in_words(error) from None


def _in_words(error: ValidationError) -> ValidationFailed:
    refusal = ValidationFailed.from_error(error)
    for fault, found in zip(refusal.errors, error.errors(include_url=False, include_input=False), strict=True):
        known = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in found.get("ctx", {}).items()
        }
        kind = "missing" if found["type"] == "string_too_short" and known.get("min_length") == 1 else found["type"]
        if kind in WORDS:
            fault["message"] = gettext(WORDS[kind]).format(**known)
    return refusal


def _without_blanks(model: type[BaseModel], values: Mapping[str, JsonValue]) -> JsonObject:
    kept: JsonObject = {}
    for name, value in values.items():
        field = model.model_fields.get(name)
        inner = find_inner_model(field.annotation) if field else None
        if isinstance(value, str) and not value.strip() and field is not None:
            if field.annotation is NoneType or NoneType in get_args(field.annotation):
                kept[name] = None
            elif field.is_required() or field.default == "":
                kept[name] = value
        elif isinstance(value, dict) and inner:
            kept[name] = _without_blanks(inner, value)
        elif isinstance(value, list) and inner:
            kept[name] = [_without_blanks(inner, item) if isinstance(item, dict) else item for item in value]
        else:
            kept[name] = value
    return kept


def find_inner_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model within `Part`, `Part | None`, or `list[Part]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := find_inner_model(part))), None)


def list_bounds(model: type[BaseModel], prefix: str = "") -> dict[str, dict[str, object]]:
    """Return the attributes of the inputs of a model's numbers, and of those of its objects, by dotted name."""
    found: dict[str, dict[str, object]] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= list_bounds(field.annotation, f"{prefix}{name}.")
            continue
        attributes: dict[str, object] = {"step": "any"} if field.annotation is float else {}
        for rule in field.metadata:
            for attribute, bound in (("min", "ge"), ("max", "le")):
                if hasattr(rule, bound):
                    attributes[attribute] = getattr(rule, bound)
        found[prefix + name] = attributes
    return found
