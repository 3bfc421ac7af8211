"""Forms generated from models: unchanged values round-trip, and invalid input is reported."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field, JsonValue, SecretStr
from switchboard.apps.dashboard.forms.schema_form import list_schema_fields, read_form_values, values_to_form


class Part(BaseModel):
    inner: int = 0


class Model(BaseModel):
    """One field of each kind."""

    text: str
    long: str = Field("", max_length=2000)
    number: int = 5
    flag: bool = False
    maybe: bool | None = None
    choice: Literal["GET", "POST"] = "GET"
    lines: list[str] = []
    pairs: dict[str, str] = {}
    metadata: dict[str, JsonValue] = {}
    anything: JsonValue = None
    part: Part | None = None
    several: int | list[int] = 0
    agent_id: str | None = None
    api_key: SecretStr | None = None


FIELDS = list_schema_fields(Model, choices={"agent_id": [("1", "Ada")]})


def test_each_kind_of_field_is_supported() -> None:
    kinds = {
        field.name: (field.kind, field.label, field.required, field.secret, bool(field.options)) for field in FIELDS
    }
    assert kinds == {
        "text": ("text", "Text", True, False, False),
        "long": ("long", "Long", False, False, False),
        "number": ("number", "Number", False, False, False),
        "flag": ("flag", "Flag", False, False, True),
        "maybe": ("flag", "Maybe", False, False, True),
        "choice": ("text", "Choice", False, False, True),
        "lines": ("lines", "Lines", False, False, False),
        "pairs": ("pairs", "Pairs", False, False, False),
        "metadata": ("object", "Metadata", False, False, False),
        "anything": ("json", "Anything", False, False, False),
        "part": ("object", "Part", False, False, False),
        "several": ("json", "Several", False, False, False),
        "agent_id": ("text", "Agent", False, False, True),
        "api_key": ("text", "API key", False, True, False),
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "Hello {{ data.from_number }}"),
        ("long", " two\nlines\n"),
        ("number", 5),
        ("number", -2.5),
        ("number", "{{ data.turns }}"),
        ("flag", True),
        ("flag", False),
        ("flag", "{{ data.flag }}"),
        ("choice", "POST"),
        ("choice", "{{ data.method }}"),
        ("lines", ["one", "two"]),
        ("lines", ["two\nlines", " and blanks "]),
        ("pairs", {"X-Name": "a: b"}),
        ("pairs", {"a:b": "c\nd"}),
        ("pairs", {}),
        ("metadata", {"order": 17, "deep": {"list": [1, None, True]}}),
        ("anything", "a text"),
        ("anything", "17"),
        ("anything", 17),
        ("anything", "[not JSON"),
        ("anything", {"a": "{{ data.body }}"}),
        ("anything", "{{ data.body }}"),
        ("anything", True),
        ("anything", '{"a": 1}'),
        ("part", {"inner": 3}),
        ("several", [1, 2]),
        ("several", 3),
        ("agent_id", "1"),
    ],
)
def test_unchanged_values_round_trip(name: str, value: JsonValue) -> None:
    values, faults = read_form_values(FIELDS, values_to_form(FIELDS, {name: value}), prefix="")
    assert not faults
    assert values == ({name: value} if value != {} else {})


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("anything", '{"a": {{ data.body }}}', "Put templates in quotes."),
        ("metadata", "order 17", "write an object as JSON"),
        ("pairs", "X-Name: a\nX-Other", "line 2: write name: value"),
        ("pairs", "X-Name: a\nX-Name: b", "line 2: X-Name is a duplicate"),
        ("lines", '["a"', "is not valid JSON"),
    ],
)
def test_invalid_input_is_reported_at_its_field(name: str, typed: str, message: str) -> None:
    values, faults = read_form_values(FIELDS, {name: typed}, prefix="settings.")
    assert values == {}
    (fault,) = faults
    assert fault["field"] == f"settings.{name}"
    assert message in fault["message"]


def test_an_empty_field_is_omitted_and_a_secret_is_never_shown() -> None:
    assert read_form_values(FIELDS, {"text": "", "number": " ", "flag": ""}, prefix="") == ({}, [])
    assert values_to_form(FIELDS, {"api_key": "sk-secret"})["api_key"] == ""
