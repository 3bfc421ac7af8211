"""Base models and field types of requests and responses."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Generic, Self, TypeVar, cast
from uuid import UUID

import phonenumbers
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    PlainSerializer,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, InitErrorDetails, PydanticCustomError

from switchboard.foundation.web.errors import MAX_ERRORS
from switchboard.plugin_sdk import CLIENT_PREFIX

MAX_JSON_DEPTH = 32
READ_ONLY = "read_only"
"""Key of the validation context: names of the fields that a response has and a request cannot set."""
CLIENT_NAME = r"[A-Za-z0-9_]{1,50}"
CLIENT = re.compile(CLIENT_PREFIX + CLIENT_NAME)
YEARS = range(1970, 3000)
"""Years of a time in a request, far from those that a shift to another zone leaves the calendar in."""
BOUNDS = {"default", "maxItems", "maxLength", "maxProperties", "maximum", "minLength", "minimum", "pattern"}
"""Keywords of JSON schema that fields of requests have, and fields of answers do not."""
PIECE = 1000
"""Items of a long list that are validated at a time."""


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def show_example(**fields: JsonValue) -> ConfigDict:
    """Let the documentation of the API show these fields as the example of a request body."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


def is_phone_number(value: str) -> bool:
    """Return whether a text is a possible E.164 phone number."""
    try:
        number = phonenumbers.parse(value, None)
    except phonenumbers.NumberParseException:
        return False
    return phonenumbers.is_possible_number(number) and value == phonenumbers.format_number(
        number, phonenumbers.PhoneNumberFormat.E164
    )


def _phone_number(value: str) -> str:
    if not is_phone_number(value):
        raise ValueError("must be an E.164 phone number like +15550100001")
    return value


def _destination(value: str) -> str:
    if not CLIENT.fullmatch(value) and not is_phone_number(value):
        raise ValueError(
            "must be an E.164 phone number like +15550100001, or client: and the name of a client, which has at most "
            "50 letters, digits, and underscores"
        )
    return value


def _with_plus(value: str) -> str:
    # An unescaped plus sign in a query arrives as a space.
    return value if value.startswith("+") else f"+{value}"


def _moment(value: JsonValue) -> datetime:
    try:
        moment = datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError("must be a time with its zone like 2026-11-20T09:30:00Z")
    if moment.year not in YEARS:
        raise ValueError(f"must be a time of the years {YEARS.start} to {YEARS.stop - 1}")
    return moment


def _require_no_nul(value: JsonValue, depth: int = 0) -> JsonValue:
    if depth > MAX_JSON_DEPTH:
        raise ValueError(f"is nested deeper than {MAX_JSON_DEPTH} levels")
    if isinstance(value, str) and "\0" in value:
        raise ValueError("must not contain NUL")
    if isinstance(value, dict):
        for key, item in value.items():
            _require_no_nul(key)
            _require_no_nul(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _require_no_nul(item, depth + 1)
    return value


Moment = Annotated[
    datetime,
    PlainSerializer(_iso, return_type=str, when_used="json"),
    Field(examples=["2026-11-20T09:30:00.000Z"], json_schema_extra={"format": "date-time"}),
]
"""A timestamp: ISO 8601 in UTC with milliseconds."""

CreatedAt = Annotated[Moment, Field(description="Time of creation.")]
UpdatedAt = Annotated[Moment, Field(description="Time of the last change.")]


def validate_in_pieces(max_length: int) -> WrapValidator:
    """Return the validator of a long list, which stops after the first thousand items of which one is faulty.

    `max_length` is that of the whole list, because pydantic applies the field's own to each piece.
    """

    def validate_pieces(value: JsonValue, validate: ValidatorFunctionWrapHandler) -> list[Any]:
        if not isinstance(value, list):
            return cast("list[Any]", validate(value))
        if len(value) > max_length:
            raise ValueError(f"has {len(value)} items, of which at most {max_length} are allowed")
        items: list[Any] = []
        for start in range(0, max(len(value), 1), PIECE):
            try:
                items += validate(value[start : start + PIECE])
            except ValidationError as error:
                faults = [_move(fault, start) for fault in error.errors()]
                raise ValidationError.from_exception_data(error.title, faults) from None
        return items

    return WrapValidator(validate_pieces)


def _move(error: ErrorDetails, start: int) -> InitErrorDetails:
    """Return the error of an item with the item's place in the whole list."""
    place, *rest = error["loc"] or (None,)
    return {
        "type": PydanticCustomError("invalid_item", "{message}", {"message": error["msg"]}),
        "loc": () if place is None else (int(place) + start, *rest),
        "input": None,
    }


GivenMoment = Annotated[datetime, BeforeValidator(_moment), Field(examples=["2026-11-20T09:30:00Z"])]
"""A timestamp in a request's body: ISO 8601 with a zone."""

Dollars = Annotated[Decimal, PlainSerializer(float, return_type=float, when_used="json")]
"""US dollars, a JSON number."""

PhoneNumberText = Annotated[str, Field(max_length=20), AfterValidator(_phone_number), Field(examples=["+15550100001"])]
"""An E.164 phone number."""

ClientName = Annotated[str, Field(pattern=f"^{CLIENT_NAME}$", examples=["reception"])]
"""Name of a browser or an app that can be rung."""

Destination = Annotated[
    str, Field(max_length=57), AfterValidator(_destination), Field(examples=["+15550100001", "client:reception"])
]
"""Destination of a call that is passed on: an E.164 phone number, or `client:` and the name of a client."""

PhoneNumberFilter = Annotated[str, Field(max_length=20), AfterValidator(_with_plus), Field(examples=["+15550100001"])]
"""A phone number to filter a list by; an invalid one matches nothing."""
SPACING = re.compile(r"[\s()./-]")
WrittenNumber = Annotated[PhoneNumberFilter, BeforeValidator(lambda text: SPACING.sub("", str(text)))]
"""The same in any common notation: with spaces, brackets, or hyphens, as the dashboard shows it."""

Name = Annotated[str, Field(min_length=1, max_length=255, description="Name for people.")]

ReferenceId = Annotated[
    str,
    Field(max_length=64, examples=["019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"], json_schema_extra={"format": "uuid"}),
]
"""The id of a resource in a request's body. Text that is not a UUID is an unknown id, which the service reports."""


class BoundedObject(BaseModel):
    """An object of a request. One with far too many fields is refused as a whole, not with an error for each field."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_many_fields(cls, value: JsonValue) -> JsonValue:
        if isinstance(value, dict) and len(value) > len(cls.model_fields) + MAX_ERRORS:
            raise ValueError(f"has {len(value)} fields, of which at most {len(cls.model_fields)} are known")
        return value


class RequestBody(BoundedObject):
    """A request's body: unknown fields and NUL are refused, strings are trimmed, types are strict."""

    model_config = ConfigDict(allow_inf_nan=False)
    _refuse_nul = field_validator("*", mode="before")(_require_no_nul)


class PartialBody(RequestBody):
    """The body of an update: only the given fields count (`model_fields_set`), so that the OpenAPI document shows no
    defaults. Read-only fields, which the validation context names, are ignored (docs/decisions/0058-updates.md).
    """

    @model_validator(mode="before")
    @classmethod
    def _ignore_read_only_fields(cls, value: JsonValue, info: ValidationInfo) -> JsonValue:
        ignored = (info.context or {}).get(READ_ONLY, frozenset())
        return {name: item for name, item in value.items() if name not in ignored} if isinstance(value, dict) else value

    def keep_changes(self, current: "Answer", **unreturned: object) -> Self:
        """Return the update without the fields that already have the given value in the resource's answer, or in
        `unreturned`, which has fields that the answer lacks. A secret is in neither, so that it always counts as a
        change.
        """
        kept, given = {**current.model_dump(mode="json"), **unreturned}, self.model_dump(mode="json")
        changes = self.model_copy()
        changes.model_fields_set.difference_update(name for name in kept.keys() & given if kept[name] == given[name])
        return changes

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        written = handler.resolve_ref_schema(handler(schema))
        for part in written.get("properties", {}).values():
            part.pop("default", None)
        return written


class Query(BaseModel):
    """Query parameters. Unknown ones are refused, so that a typo in a filter is reported."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)
    _refuse_nul = field_validator("*", mode="before")(_require_no_nul)


class PageQuery(Query):
    """The page of a list."""

    limit: int = Field(50, ge=1, le=100, description="Maximum number of items on the page.")
    offset: int = Field(0, ge=0, le=2**31 - 1, description="Number of newer items to skip.")


class Answer(BaseModel):
    """A response's body."""

    model_config = ConfigDict(from_attributes=True)


def show_as_answer(schema: dict[str, Any]) -> None:
    """Rewrite the JSON schema of a request's fields for an answer: every field is required, and none has bounds."""
    properties = schema["properties"]
    schema["required"] = list(properties)
    for part in properties.values():
        for shown in (part, *part.get("anyOf", ()), part.get("items", {})):
            for keyword in shown.keys() & BOUNDS:
                del shown[keyword]


Item = TypeVar("Item", bound=BaseModel)


class Page(Answer, Generic[Item]):
    """One page of a list, newest first."""

    items: list[Item] = Field(description="Items of the page, newest first.")
    total: int = Field(description="Number of items on all pages.")
    limit: int = Field(description="Maximum number of items on a page, as requested.")
    offset: int = Field(description="Number of items before the page, as requested.")


NO_ID: Final = UUID(int=0)
"""An id that no row has."""


def parse_id(value: str) -> UUID | None:
    """Parse an id; None for text that is not a UUID, which is an unknown id."""
    try:
        return UUID(value)
    except ValueError:
        return None
