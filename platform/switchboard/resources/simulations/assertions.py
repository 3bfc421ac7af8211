"""What a simulation looks for: the assertions as they are given."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from switchboard.foundation.web.schemas import Name

EndedBy = Literal["agent", "caller", "transfer", "limit"]
"""Who ended it: the agent (`end_call`, or silence in a call), the caller with nothing more to say, a transfer, or `max_turns`."""
Phrase = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        description="Words in a row, in any case; `*` stands for anything.",
        examples=["open * seven"],
    ),
]


class _Named(BaseModel):
    """What every assertion may have. No `RequestBody`, whose check for NUL a discriminator cannot have: the simulation's own check is enough."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, strict=True, allow_inf_nan=False)

    name: Name | None = Field(None, description="What its criterion is called; left out, what it looks for.")


class Said(_Named):
    """The agent says it, in one turn."""

    type: Literal["said"]
    text: Phrase


class NeverSaid(_Named):
    """The agent does not say it in any turn."""

    type: Literal["never_said"]
    text: Phrase


class ToolCalled(_Named):
    """The agent calls a tool. In mode `text` its `arguments` may be looked at too."""

    type: Literal["tool_called"]
    tool: Name
    arguments: dict[str, JsonValue] = Field(
        default_factory=dict, max_length=50, description="Those that must be given; others may be."
    )


class Ended(_Named):
    """The conversation is ended by this side."""

    type: Literal["ended_by"]
    by: EndedBy


class LatencyUnder(_Named):
    """Each answer of the agent begins sooner. Mode `audio` only."""

    type: Literal["latency_under_ms"]
    milliseconds: int = Field(ge=1, le=60_000, description="From the caller's last sound to the agent's first.")


class Judged(_Named):
    """The agent's model reads the transcript and says whether this holds."""

    type: Literal["judge"]
    question: str = Field(min_length=1, max_length=2000, examples=["Was the agent friendly throughout?"])


Assertion: TypeAlias = Annotated[
    Said | NeverSaid | ToolCalled | Ended | LatencyUnder | Judged, Field(discriminator="type")
]
