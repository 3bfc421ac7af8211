"""What a form brings, made into the same pydantic models as the API's bodies, and shown again with what is wrong with it.

Names say the shape: `slots.0.start` is the start of the first of `slots`; a name that ends with `[]` is a list of all its values. Of several
fields of one name the last counts, so that a hidden `false` may stand before a checkbox. An empty text is null where the model takes null, and is
left out where it has a default, unless that is the empty text itself: what is cleared is empty then.
"""

import re
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, JsonValue, ValidationError
from werkzeug.datastructures import MultiDict

from switchboard.foundation.web.errors import FieldError, ValidationFailed

Model = TypeVar("Model", bound=BaseModel)
OWN = ("csrf_token",)
WORDS = {
    "missing": "must be filled in",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length:,} characters",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "decimal_parsing": "must be a number",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
}
"""What pydantic finds wrong, by its names for it, as one says it to people; `{…}` is what it knows beside."""


class Form:
    """What a page's form shows: the values as they were sent or are kept, and what is wrong, by field."""

    def __init__(
        self, values: Mapping[str, JsonValue] | None = None, *, errors: Sequence[FieldError] = (), message: str = ""
    ) -> None:
        self._values = dict(values or {})
        self.errors = {error["field"]: error["message"] for error in errors}
        self.message = message
        self.was_sent = bool(errors or message)

    def starting_with(self, values: Mapping[str, JsonValue]) -> "Form":
        """The same form, which shows these where nothing was sent."""
        if not self.was_sent:
            self._values = dict(values)
        return self

    def value(self, name: str, default: JsonValue = None) -> JsonValue:
        """A field's value, by its dotted name."""
        here: JsonValue = self._values
        for part in name.split("."):
            if isinstance(here, dict):
                here = here.get(part)
            elif isinstance(here, list) and part.isdigit() and int(part) < len(here):
                here = here[int(part)]
            else:
                return default
        return default if here is None else here

    def error(self, name: str) -> str:
        """What is wrong with a field; empty where nothing is."""
        return self.errors.get(name, "")

    @property
    def stray_errors(self) -> list[str]:
        """What is wrong beside the fields that a page has: each with its field's name."""
        return [f"{field}: {message}" for field, message in self.errors.items()]


def nested(fields: "MultiDict[str, str]") -> dict[str, JsonValue]:
    """A form's flat fields as the object that their names describe. A NUL, which no field lets people type and PostgreSQL keeps nowhere, becomes
    U+FFFD, as browsers have it (HTML, 13.2.5)."""
    root: dict[str, JsonValue] = {}
    for sent, given in fields.lists():
        name, values = sent.replace("\0", "\ufffd"), [value.replace("\0", "\ufffd") for value in given]
        if name not in OWN:
            _put(root, name.removesuffix("[]").split("."), list(values) if name.endswith("[]") else values[-1])
    return {name: _listed(value) for name, value in root.items()}


def _put(target: dict[str, JsonValue], path: list[str], value: JsonValue) -> None:
    for part in path[:-1]:
        inner = target.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        target = inner
    target[path[-1]] = value


def _listed(value: JsonValue) -> JsonValue:
    """Objects whose keys are all numbers become lists in their order; gaps, left by rows that were removed, close."""
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(item) for key, item in value.items()}
    if inner and all(re.fullmatch(r"\d{1,4}", key) for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def parse(model: type[Model], values: Mapping[str, JsonValue]) -> Model:
    """Texts become what the model's fields are. Raises `ValidationFailed`."""
    try:
        return model.model_validate(_without_blanks(model, values), strict=False)
    except ValidationError as error:
        raise _in_words(error) from None


def _in_words(error: ValidationError) -> ValidationFailed:
    refusal = ValidationFailed.of(error)
    for fault, found in zip(refusal.errors, error.errors(include_url=False, include_input=False), strict=True):
        known = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in found.get("ctx", {}).items()
        }
        kind = "missing" if found["type"] == "string_too_short" and known.get("min_length") == 1 else found["type"]
        if kind in WORDS:
            fault["message"] = WORDS[kind].format(**known)
    return refusal


def _without_blanks(model: type[BaseModel], values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {}
    for name, value in values.items():
        field = model.model_fields.get(name)
        inner = _model_in(field.annotation) if field else None
        if isinstance(value, str) and not value.strip() and field is not None:
            if _takes_null(field.annotation):
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


def _takes_null(annotation: Any) -> bool:
    return annotation is NoneType or NoneType in get_args(annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model within `Part`, `Part | None`, `list[Part]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
