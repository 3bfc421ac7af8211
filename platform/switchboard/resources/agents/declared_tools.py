"""Tools that an organization declares for an agent."""

from typing import Annotated, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from switchboard.foundation.web.schemas import RequestBody

Url = Annotated[str, Field(max_length=2048, examples=["https://example.com/hooks/agent"])]
BUILT_IN_TOOLS = (
    "end_call",
    "transfer_call",
    "press_digits",
    "send_sms",
    "opt_out",
    "search_knowledge",
    "ask_for_person",
    "note_callback",
)
MAX_SCHEMA_CHARACTERS = 16_000
NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "properties": {}}


class KeypadArgument(RequestBody):
    """An argument of a tool that the caller enters on the phone's keypad. The model does not see it."""

    parameter: str = Field(min_length=1, max_length=64, description="Name of a property of `parameters`.")
    prompt: str = Field("", max_length=500, description="Spoken before the entry.")
    max_digits: int = Field(20, ge=1, le=50, description="The entry ends after so many digits, or with `#`.")


class DeclaredTool(RequestBody):
    """A function of the organization that the agent's model may call, in calls and text messages."""

    name: str = Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$",
        examples=["find_order"],
        description="Name by which the model calls the tool, not one of a built-in tool.",
    )
    description: str = Field(
        min_length=1, max_length=2000, description="Tells the model when to call the tool and what it does."
    )
    url: Url = Field(
        description=(
            "Receives a POST with `tool`, `arguments`, and the conversation, signed with the agent's "
            "`webhook_secret`; returns a JSON object."
        )
    )
    parameters: dict[str, JsonValue] = Field(
        default_factory=lambda: dict(NO_ARGUMENTS), description="JSON schema of the arguments, of type object."
    )
    time_limit_seconds: float = Field(
        10.0, ge=1, le=60, description="Seconds after which the request counts as failed, and the model is told so."
    )
    keypad_entries: list[KeypadArgument] = Field(
        default_factory=list,
        max_length=10,
        description="Arguments that the caller enters on the keypad before the tool is called, in this order.",
    )

    @field_validator("name")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if value in BUILT_IN_TOOLS:
            raise ValueError(f"{value} is the name of a built-in tool")
        return value

    @field_validator("parameters")
    @classmethod
    def _is_an_objects_schema(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if value.get("type") != "object" or not isinstance(value.get("properties", {}), dict):
            raise ValueError("must be a JSON schema of type object")
        if len(str(value)) > MAX_SCHEMA_CHARACTERS:
            raise ValueError(f"must have at most {MAX_SCHEMA_CHARACTERS} characters")
        return value

    @model_validator(mode="after")
    def _enter_parameters(self) -> Self:
        properties = self.parameters.get("properties")
        names = [entry.parameter for entry in self.keypad_entries]
        for name in names:
            if not isinstance(properties, dict) or name not in properties or names.count(name) > 1:
                raise ValueError(f"keypad_entries: {name} must be a property of parameters, and entered once")
        return self
