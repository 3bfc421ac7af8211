"""Assertions of a simulation, as given."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from switchboard.foundation.web.schemas import Name

EndedBy = Literal["agent", "caller", "transfer", "limit"]
"""The side that ended the conversation: the agent (`end_call`, or silence in a call), the caller with nothing more
to say, a transfer, or `max_turns`.
"""
Phrase = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Consecutive words in any letter case; `*` matches anything.",
        examples=["open * seven"],
    ),
]


class _Named(BaseModel):
    """Fields of every assertion. Not a `RequestBody`, whose check for NUL a discriminated union cannot have: the
    simulation's own check is enough.
    """

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, strict=True, allow_inf_nan=False)

    name: Name | None = Field(None, description="Name of the criterion; defaults to a description of the assertion.")


class Said(_Named):
    """The agent says the text in one turn."""

    type: Literal["said"] = Field(description="Kind of assertion.")
    text: Phrase


class NeverSaid(_Named):
    """The agent does not say the text in any turn."""

    type: Literal["never_said"] = Field(description="Kind of assertion.")
    text: Phrase


class ToolCalled(_Named):
    """The agent calls a tool. Mode `text` can check its `arguments` too."""

    type: Literal["tool_called"] = Field(description="Kind of assertion.")
    tool: Name = Field(description="Name of the tool.")
    arguments: dict[str, JsonValue] = Field(
        default_factory=dict, max_length=50, description="Required arguments; others are allowed."
    )


class Ended(_Named):
    """This side ends the conversation."""

    type: Literal["ended_by"] = Field(description="Kind of assertion.")
    by: EndedBy = Field(description="Side that ends the conversation; `limit` is `max_turns`.")


class LatencyUnder(_Named):
    """Each answer of the agent starts within the limit. Mode `audio` only."""

    type: Literal["latency_under_ms"] = Field(description="Kind of assertion.")
    milliseconds: int = Field(ge=1, le=60_000, description="From the caller's last sound to the agent's first.")


class Judged(_Named):
    """The agent's model reads the transcript and judges whether the statement holds."""

    type: Literal["judge"] = Field(description="Kind of assertion.")
    question: str = Field(
        min_length=1,
        max_length=2000,
        examples=["Was the agent friendly throughout?"],
        description="Statement or question about the transcript; yes passes.",
    )


Assertion: TypeAlias = Annotated[
    Said | NeverSaid | ToolCalled | Ended | LatencyUnder | Judged,
    Field(discriminator="type"),
]
