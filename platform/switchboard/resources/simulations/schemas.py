"""API schemas of simulations, an addition to the specification."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationInfo, field_validator
from pydantic.config import JsonDict

from switchboard.foundation.encryption.content import PLAIN
from switchboard.foundation.events.catalog import SimulationCriterion
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.schemas import Answer, CreatedAt, Moment, Name, RequestBody, show_example

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


ASSERTED_FIELDS: Final[Mapping[str, str]] = {
    "said": "text",
    "never_said": "text",
    "tool_called": "tool",
    "ended_by": "by",
    "latency_under_ms": "milliseconds",
    "judge": "question",
}
"""The field that says what has to hold, by assertion type."""
MAX_ASSERTIONS = 50
ASSERTIONS: TypeAdapter[list[Assertion]] = TypeAdapter(list[Assertion])
EXAMPLE: JsonDict = {
    "name": "Opening hours",
    "lines": ["What are your opening hours?", "Goodbye"],
    "assertions": [{"type": "said", "text": "open from * to"}, {"type": "ended_by", "by": "agent"}],
}


class SimulationCreate(RequestBody):
    """A caller to simulate, and the assertions."""

    model_config = show_example(**EXAMPLE)

    name: Name
    mode: Literal["text", "audio"] = Field(
        "text", description="`audio` calls one of the agent's numbers over the loopback carrier."
    )
    persona: str = Field("", max_length=5000, description="Personality and manner of the caller.")
    goal: str = Field("", max_length=5000, description="Goal of the caller.")
    lines: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default_factory=list,
        validate_default=True,
        max_length=50,
        description="The caller's lines, in order. Without lines, the model plays the caller by persona and goal.",
    )
    target: Literal["published", "draft"] = Field(
        "published", description="`draft` tests the agent's draft as it is saved; mode `text` only."
    )
    max_turns: int = Field(20, ge=1, le=50, description="Maximum number of the caller's turns.")
    assertions: list[Assertion] = Field(
        min_length=1, max_length=MAX_ASSERTIONS, description="What has to hold for the simulation to pass."
    )

    @field_validator("lines")
    @classmethod
    def _playable(cls, lines: list[str], info: ValidationInfo) -> list[str]:
        if not lines and info.data.get("mode") == "audio":
            raise ValueError("are required in mode audio: give at least one line")
        if not lines and not info.data.get("goal"):
            raise ValueError("are required without a goal")
        return lines

    def check(self) -> None:
        """Check that the mode has the target and can evaluate each assertion. Raises `ValidationFailed`."""
        if self.target == "draft" and self.mode == "audio":
            raise ValidationFailed.field("target", "mode audio calls the published agent")
        for index, assertion in enumerate(self.assertions):
            if isinstance(assertion, LatencyUnder) and self.mode == "text":
                raise ValidationFailed.field(f"assertions.{index}.type", "latency_under_ms needs mode audio")
            if isinstance(assertion, ToolCalled) and assertion.arguments and self.mode == "audio":
                raise ValidationFailed.field(f"assertions.{index}.arguments", "can be checked in mode text only")


class SpokenOut(Answer):
    """An utterance or a tool call (`content` is JSON: `tool`, `result`, and in mode `text` also `arguments`)."""

    role: Literal["user", "agent", "tool", "system"] = Field(description="`user` is the simulated caller.")
    content: str = Field(description="The words, or the tool call as JSON.")


class SimulationOut(Answer):
    """A simulation."""

    id: UUID = Field(description="Id of the simulation.")
    agent_id: UUID = Field(description="Id of the agent.")
    name: str
    mode: Literal["text", "audio"]
    persona: str
    goal: str
    lines: list[str]
    max_turns: int
    assertions: list[Assertion]
    status: Literal["queued", "running", "passed", "failed", "error"] = Field(
        description="`passed` and `failed` are judgments of the agent; `error` is not."
    )
    score: float | None = Field(description="Share of criteria that passed, 0 to 1.")
    criteria: Annotated[list[SimulationCriterion], PLAIN] = Field(
        description="One per assertion, once the simulation is over."
    )
    turns: int = Field(description="Number of the caller's turns.")
    duration_seconds: int = Field(description="Seconds from the beginning to the end.")
    transcript: Annotated[list[SpokenOut], PLAIN] = Field(description="Utterances and tool calls, in order.")
    ended_by: EndedBy | None = Field(
        description="Side that ended the conversation; `limit` is `max_turns`. Null until then."
    )
    call_id: UUID | None = Field(description="Id of the call in mode `audio`.")
    draft_revision: UUID | None = Field(description="Revision of the draft that is tested; null: the published agent.")
    error_message: str | None = Field(description="Reason for status `error`, which says nothing about the agent.")
    created_at: CreatedAt
    started_at: Moment | None = Field(description="Time of the beginning; null before it.")
    completed_at: Moment | None = Field(description="Time of the end; null before it.")
