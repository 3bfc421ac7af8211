"""Settings of an agent's conversations that are objects: ends of turns, voicemail, redaction, and extraction."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from switchboard.foundation.web.schemas import RequestBody

DataKind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


class TurnDetection(RequestBody):
    """Rules by which a caller who pauses has finished."""

    mode: Literal["silence", "text", "audio", "auto"] = Field(
        "auto",
        description=(
            "`silence`: every pause of `min_silence_seconds` ends the turn. `text`: unless the words are incomplete. "
            "`audio`: unless the organization's turn detector judges it incomplete. `auto`: by the words, and by the "
            "turn detector where they leave doubt."
        ),
    )
    min_silence_seconds: float = Field(0.2, ge=0.2, le=5, description="Shortest pause that ends a turn.")
    max_silence_seconds: float = Field(2.0, ge=0.2, le=10, description="Pause that ends an incomplete turn, too.")

    @model_validator(mode="after")
    def _order_silences(self) -> Self:
        if self.min_silence_seconds > self.max_silence_seconds:
            raise ValueError("max_silence_seconds must not be less than min_silence_seconds")
        return self


class VoicemailPolicy(RequestBody):
    """Policy for machines that answer outbound calls."""

    action: Literal["off", "hang_up", "leave_message"] = Field(
        "hang_up",
        description=(
            "`off`: machines are not recognized, and the agent talks to them. `hang_up`: the call ends. "
            "`leave_message`: the agent is silent until the greeting is over, says the message, and hangs up."
        ),
    )
    message: str = Field(
        "", max_length=2000, description="Spoken after the beep; `{{name}}` is replaced by a value of `metadata`."
    )
    prompt: str = Field(
        "", max_length=10_000, description="Instructions by which the model writes the message, instead of `message`."
    )
    carrier_detection: bool = Field(
        True,
        description=(
            "The carrier recognizes machines, which most bill for each call. Otherwise, and where a carrier cannot, "
            "the platform judges the audio."
        ),
    )

    @model_validator(mode="after")
    def _say_something(self) -> Self:
        if self.action == "leave_message" and bool(self.message.strip()) == bool(self.prompt.strip()):
            raise ValueError("leave_message needs either message or prompt")
        return self


class Redaction(RequestBody):
    """Private data of an agent's conversations that is replaced before it is kept or sent."""

    kinds: list[DataKind] = Field(
        max_length=50,
        description=(
            "Kinds to redact: `card_number`, `iban`, `national_id`, `pin`, `phone_number`, `email_address`, `keypad`, "
            "and those of plugins. Empty: nothing, whatever the organization's default is."
        ),
        examples=[["card_number", "pin", "keypad"]],
    )
    visible_to_model: list[DataKind] = Field(
        default_factory=list,
        max_length=50,
        description="Those of the kinds that the agent's model sees during a call, because it needs them.",
    )


class ExtractedField(RequestBody):
    """A value to extract from a call."""

    type: Literal["string", "number", "integer", "boolean"] = Field(description="JSON type of the value.")
    description: str = Field("", max_length=1000, description="Description of the value for the analysis.")
    enum: list[str] | None = Field(None, min_length=1, max_length=100, description="The only texts allowed.")


class ExtractionSchema(RequestBody):
    """The values that the analysis after a call extracts, as a JSON schema: an object of plain values."""

    type: Literal["object"] = Field("object", description="Always `object`.")
    properties: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")], ExtractedField] = Field(
        min_length=1, max_length=50, description="Values to extract, by their name in `extracted_data`."
    )
    required: list[str] = Field(
        default_factory=list, max_length=50, description="Names of the values that must not be missing."
    )
