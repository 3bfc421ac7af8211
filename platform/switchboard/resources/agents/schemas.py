"""API schemas of agents."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, field_validator, model_validator

from switchboard.foundation.web.schemas import (
    Answer,
    Moment,
    Name,
    PageQuery,
    PartialBody,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
)
from switchboard.resources.agents.models import Agent, AgentVersion
from switchboard.resources.disclosure.settings import DisclosureSettings

Label = Annotated[str, Field(min_length=1, max_length=255)]
Prompt = Annotated[str, Field(max_length=100_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Secret = Annotated[str, Field(min_length=1, max_length=255)]
Url = Annotated[str, Field(max_length=2048, examples=["https://example.com/hooks/agent"])]
Reading = Annotated[str, Field(min_length=1, max_length=255, pattern=r"\S")]
DataKind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Status = Literal["active", "paused"]
BUILT_IN_TOOLS = ("end_call", "transfer_call", "press_digits", "send_sms", "opt_out", "search_knowledge")
MAX_SCHEMA_CHARACTERS = 16_000
NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "properties": {}}


class ExtractedField(RequestBody):
    """A value to extract from a call."""

    type: Literal["string", "number", "integer", "boolean"]
    description: str = Field("", max_length=1000, description="Description of the value for the analysis.")
    enum: list[str] | None = Field(None, min_length=1, max_length=100, description="The only texts allowed.")


class ExtractionSchema(RequestBody):
    """The values that the analysis after a call extracts, as a JSON schema: an object of plain values."""

    type: Literal["object"] = "object"
    properties: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")], ExtractedField] = Field(
        min_length=1, max_length=50
    )
    required: list[str] = Field(default_factory=list, max_length=50)


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


class KeypadArgument(RequestBody):
    """An argument of a tool that the caller enters on the phone's keypad. The model does not see it."""

    parameter: str = Field(min_length=1, max_length=64, description="Name of a property of `parameters`.")
    prompt: str = Field("", max_length=500, description="Spoken before the entry.")
    max_digits: int = Field(20, ge=1, le=50, description="The entry ends after so many digits, or with `#`.")


class DeclaredTool(RequestBody):
    """A function of the organization that the agent's model may call, in calls and text messages."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$", examples=["find_order"])
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
    time_limit_seconds: float = Field(10.0, ge=1, le=60)
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


class AgentFields(RequestBody):
    """Fields that create and update share. A missing field keeps its default or its value."""

    system_prompt: Prompt = Field(
        "", description="The agent's instructions; `{{name}}` is replaced by a value of the call's `metadata`."
    )
    llm_provider: Label | None = Field(
        None, description="One of the organization's providers; defaults to the first one."
    )
    llm_model: Label | None = None
    llm_temperature: float = Field(0.7, ge=0, le=2)
    tts_provider: Label | None = None
    tts_voice_id: Label | None = None
    tts_model: Label | None = None
    voice_speed: float = Field(1.0, ge=0.5, le=2.0)
    pronunciations: dict[Reading, Reading] = Field(
        {},
        max_length=200,
        description="Pronunciation of words, in any letter case; an addition.",
        examples=[{"Siobhan": "Shivawn"}],
    )
    stt_provider: Label | None = None
    stt_model: Label | None = None
    stt_language: str = Field(
        "en-US",
        pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        max_length=35,
        description="BCP 47 tag; `mul` if callers switch between languages.",
    )
    greeting_message: Prompt = Field("", description="The agent's first words; empty: the agent waits for the caller.")
    end_call_silence_seconds: int = Field(30, ge=5, le=600)
    max_call_duration_seconds: int = Field(1800, ge=30, le=14_400)
    allow_interruptions: bool = True
    interruption_min_words: int = Field(
        1,
        ge=0,
        le=10,
        description=(
            "Number of words that interrupt the agent; 0: any speech interrupts. From 1 on, backchannels such as "
            '"mhm" and "okay" never do.'
        ),
    )
    vad_confidence: Share = 0.7
    vad_start_secs: Share = 0.2
    vad_min_volume: Share = 0.6
    webhook_url: Url | None = Field(None, description="Receives the events of this agent's calls, signed.")
    knowledge_base_ids: list[ReferenceId] = Field(
        default_factory=list,
        max_length=100,
        description="Knowledge bases that the agent searches, in calls and text messages; an addition.",
    )
    tools: list[DeclaredTool] = Field(
        default_factory=list, max_length=50, description="Functions that the model may call; an addition."
    )
    disabled_tools: list[Label] = Field(
        default_factory=list,
        max_length=100,
        description="Names of tools that the agent does not have, such as `transfer_call`; an addition.",
        examples=[["transfer_call"]],
    )
    allowed_numbers: list[PhoneNumberText] = Field(
        default_factory=list,
        max_length=100,
        description=(
            "Phone numbers to which the model may transfer calls and send text messages, besides those in "
            "`system_prompt`; an addition."
        ),
        examples=[["+15550100001"]],
    )
    any_number: bool = Field(
        False,
        description=(
            "The model may transfer calls and send text messages to any number that the organization may call, also "
            "to one that a caller asks for; an addition."
        ),
    )
    extraction_schema: ExtractionSchema | None = Field(
        None,
        description="Schema of `extracted_data` of this agent's calls; null: the analysis decides. An addition.",
    )
    redaction: Redaction | None = Field(
        None,
        description="Private data to redact; null: the default of the organization's tenant file. An addition.",
    )
    disclosure: DisclosureSettings | None = Field(
        None,
        description=(
            "Notice of AI and recording, and consent, at the beginning of calls. The organization's tenant file may "
            "demand more, and never less. An addition."
        ),
    )
    turn_detection: TurnDetection = Field(
        default_factory=TurnDetection, description="When a caller who pauses has finished; an addition."
    )
    voicemail_policy: VoicemailPolicy = Field(
        default_factory=VoicemailPolicy,
        description="What happens when voicemail answers an outbound call; an addition.",
    )
    webhook_secret: Secret | None = Field(None, description="Signs requests to `webhook_url`; never returned.")


class AgentCreate(AgentFields):
    """A new agent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Front desk",
                    "system_prompt": "You answer the phone of a bakery.",
                    "greeting_message": "Hello!",
                }
            ]
        }
    )

    name: Name


class AgentUpdate(AgentFields, PartialBody):
    """A partial update of an agent."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"greeting_message": "Good day, how can I help?"}]})

    name: Name = ""
    status: Status = "active"
    timezone: str = Field("UTC", max_length=64, description="IANA time zone; not returned.")


class AgentQuery(PageQuery):
    """Filters of the agent list."""

    agent_type: str | None = Field(None, max_length=64)


class AgentOut(Answer):
    """An agent."""

    id: UUID
    name: str
    agent_type: Literal["voice"]
    status: Status
    version: int = Field(description="Incremented by each update that changes something; an addition.")
    llm_provider: str
    llm_model: str | None
    llm_temperature: float
    system_prompt: str
    tts_provider: str
    tts_voice_id: str | None
    tts_model: str | None
    voice_speed: float
    pronunciations: dict[str, str]
    stt_provider: str
    stt_model: str | None
    stt_language: str
    greeting_message: str
    end_call_silence_seconds: int
    max_call_duration_seconds: int
    allow_interruptions: bool
    interruption_min_words: int
    vad_confidence: float
    vad_start_secs: float
    vad_min_volume: float
    webhook_url: str | None
    knowledge_base_ids: list[UUID] = Field(description="An addition.")
    tools: list[DeclaredTool] = Field(description="An addition.")
    disabled_tools: list[str] = Field(description="An addition.")
    allowed_numbers: list[str] = Field(description="An addition.")
    any_number: bool = Field(description="An addition.")
    extraction_schema: ExtractionSchema | None = Field(description="An addition.")
    redaction: Redaction | None = Field(description="An addition.")
    disclosure: DisclosureSettings | None = Field(description="An addition.")
    turn_detection: TurnDetection = Field(description="An addition.")
    voicemail_policy: VoicemailPolicy = Field(description="An addition.")
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, agent: Agent) -> "AgentOut":
        return cls.model_validate(agent)


class AgentVersionOut(Answer):
    """An agent as of one update."""

    version: int
    settings: dict[str, object]
    created_at: Moment

    @classmethod
    def of(cls, version: AgentVersion) -> "AgentVersionOut":
        return cls.model_validate(version)
