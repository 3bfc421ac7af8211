"""Settings of an agent: one declaration for the API, the stored document, and the comparison of versions."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeVar
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from switchboard.engine.disclosure.settings import DisclosureSettings
from switchboard.foundation.conditions import Comparison
from switchboard.foundation.web.schemas import Destination, ReferenceId, RequestBody
from switchboard.plugin_sdk import Origin

Label = Annotated[str, Field(min_length=1, max_length=255)]
Prompt = Annotated[str, Field(max_length=100_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Reading = Annotated[str, Field(min_length=1, max_length=255, pattern=r"\S")]
DataKind = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
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
    "find_slots",
    "book_appointment",
    "move_appointment",
    "cancel_appointment",
    "note_variables",
)
BUILT_IN_CLAIMS: Final[Mapping[str, tuple[str, ...]]] = {
    "booked": ("book_appointment", "move_appointment"),
    "rescheduled": ("move_appointment",),
    "canceled": ("cancel_appointment",),
    "transferred": ("transfer_call", "ask_for_person", "hand_off_to_", "hand_back"),
    "message_sent": ("send_sms",),
    "opted_out": ("opt_out",),
    "refunded": (),
    "price": (),
    "opening_hours": (),
}
"""Claims that are known without phrases, with the built-in tools that make them true."""
MAX_SCHEMA_CHARACTERS = 16_000
NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "properties": {}}
FACTS: Final = ("variables", "keys", "tool", "result")
"""Kinds of facts that force a hand-off."""
NamedT = TypeVar("NamedT", "AgentVariable", "Claim", "BannedTopic", "Guardrail")
DETECTOR_MODES: Final = ("audio", "auto")
"""Modes of turn detection that ask a turn detector."""


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

    @property
    def asks_carrier(self) -> bool:
        """Return whether the carrier is to recognize machines."""
        return self.action != "off" and self.carrier_detection

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


class KeypadArgument(RequestBody):
    """An argument of a tool that the caller enters on the phone's keypad. The model does not see it."""

    parameter: str = Field(min_length=1, max_length=64, description="Name of a property of `parameters`.")
    prompt: str = Field("", max_length=500, description="Spoken before the entry.")
    max_digits: int = Field(20, ge=1, le=50, description="The entry ends after so many digits, or with `#`.")


class AgentVariable(RequestBody):
    """A value that the agent learns in a conversation."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,63}$", examples=["order_number"], description="Name of the variable, each once."
    )
    description: str = Field("", max_length=500, description="Tells the model what the value is.")
    source: Literal["words", "keypad", "tool"] = Field(
        "words",
        description=(
            "`words`: the model notes what the caller says. `keypad`: the model lets the caller enter it, and does not "
            "see it. `tool`: it stands in the result of a tool."
        ),
    )
    prompt: str = Field("", max_length=500, description="With `keypad`: spoken before the entry.")
    max_digits: int = Field(20, ge=1, le=50, description="With `keypad`: the entry ends after so many digits, or `#`.")
    tool: str = Field("", max_length=64, description="With `tool`: name of the tool.", examples=["find_order"])
    path: str = Field(
        "",
        max_length=255,
        validate_default=True,
        description="With `tool`: path of the value in the result.",
        examples=["order.number"],
    )

    @field_validator("path")
    @classmethod
    def _is_found(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("source") == "tool" and not (value.strip() and str(info.data.get("tool", "")).strip()):
            raise ValueError("and tool are needed, because the value comes from a tool")
        return value


class NeededVariable(RequestBody):
    """A variable without which a tool does not run."""

    name: str = Field(min_length=1, max_length=64, description="Name of the variable.")
    least_origin: Origin = Field(
        "words",
        description=(
            "The least trusted origin that counts: `words`, `keypad`, `carrier`, `crm`, `metadata`, or `tool`, in this "
            "order."
        ),
    )


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
    needs: list[NeededVariable] = Field(
        default_factory=list,
        max_length=10,
        description="Variables that must be known before the tool is called; the request has all of them.",
    )

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


def _check_fact(path: str) -> str:
    root, *rest = path.split(".")
    if not all(rest) or root not in FACTS or bool(rest) != (root in ("variables", "result")):
        raise ValueError(f"{path!r} must be keys, tool, or start with variables. or result., like variables.plan")
    return path


class HandoffCondition(Comparison):
    """A fact of the call."""

    field: Annotated[str, Field(max_length=255, examples=["keys"]), AfterValidator(_check_fact)] = Field(
        description=(
            "`keys`: the digits that the caller has pressed; `tool`: the name of a tool that has returned, and "
            "`result.` with a path into its result; `variables.` with the name of a variable."
        )
    )

    least_origin: Origin | None = Field(
        None,
        description=(
            "For `variables.`: the least trusted origin that counts, of `words`, `keypad`, `carrier`, `crm`, "
            "`metadata`, and `tool`; null: any."
        ),
    )

    @property
    def fact(self) -> str:
        """Return the kind of the fact, one of `FACTS`."""
        return self.field.partition(".")[0]


class Handoff(RequestBody):
    """Another agent that may get the conversation."""

    agent_id: ReferenceId = Field(description="Id of the agent that gets the conversation.")
    description: str = Field(
        "",
        max_length=1000,
        description="Tells the model when to hand over; empty: only `conditions` do.",
        examples=["Questions about invoices and payments."],
    )
    conditions: list[HandoffCondition] = Field(
        default_factory=list,
        validate_default=True,
        max_length=10,
        description="Facts that hand over without the model, as soon as all of them hold.",
    )
    mode: Literal["replace", "call_and_return"] = Field(
        "replace",
        description=(
            "`replace`: the other agent keeps the conversation. `call_and_return`: it does its part and comes back "
            "with a result."
        ),
    )
    context: Literal["everything", "last_turns", "summary", "nothing"] = Field(
        "everything",
        description=(
            "Share of the conversation that the other agent gets, as the caller has heard it, and that this one gets "
            "back in mode `call_and_return`. `summary` is written by this agent's model while it still speaks."
        ),
    )
    last_turns: int = Field(6, ge=1, le=50, description="Number of utterances of both sides with `last_turns`.")
    greeting: Literal["continue", "own", "none"] = Field(
        "continue",
        description=(
            "First words of the other agent. `continue`: it goes on, knowing that the caller has been greeted. `own`: "
            "its `greeting_message`. `none`: it waits for the caller."
        ),
    )

    @field_validator("conditions")
    @classmethod
    def _can_happen(cls, value: list[HandoffCondition], info: ValidationInfo) -> list[HandoffCondition]:
        if not value and not str(info.data.get("description", "")).strip():
            raise ValueError("are needed without a description")
        return value


class Claim(RequestBody):
    """A statement that the agent makes only if a tool has returned success in the conversation."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,63}$",
        examples=["booked"],
        description=(
            "`booked`, `rescheduled`, `canceled`, `transferred`, `message_sent`, `opted_out`, and `refunded` are found "
            "without `phrases`, in English, German, Spanish, and French. `price` and `opening_hours`: the figure must "
            "stand in what the agent was given. Other names need `phrases`."
        ),
    )
    phrases: list[Reading] = Field(
        default_factory=list,
        validate_default=True,
        max_length=100,
        description="Phrases that make the claim, in any letter case.",
        examples=[["your table is ready"]],
    )
    tools: list[Label] = Field(
        default_factory=list,
        max_length=20,
        description=(
            "Tools one of which must have returned success, besides the built-in ones of the claim. With none the "
            "agent never makes the claim."
        ),
        examples=[["reserve_table"]],
    )

    @field_validator("phrases")
    @classmethod
    def _can_be_found(cls, value: list[str], info: ValidationInfo) -> list[str]:
        name = info.data.get("name")
        if not value and name is not None and name not in BUILT_IN_CLAIMS:
            raise ValueError(f"are needed for {name}, which is not one of the built-in claims")
        return value


class BannedTopic(RequestBody):
    """A subject that the agent does not talk about."""

    name: str = Field(
        min_length=1, max_length=255, pattern=r"\S", examples=["legal advice"], description="Subject, for the model."
    )
    keywords: list[Reading] = Field(
        default_factory=list,
        max_length=100,
        description=(
            "Words of sentences that may be about it, about which a model is asked; empty: the name. Other sentences "
            "are not delayed."
        ),
        examples=[["lawsuit", "sue", "court"]],
    )


class Guardrail(RequestBody):
    """Words of the other side that the agent does not simply answer."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,63}$", examples=["override"], description="Name in records, each once."
    )
    watches: Literal["override", "off_subject", "content"] = Field(
        description=(
            "`override`: attempts to change, get around, or reveal the agent's instructions. `off_subject`: requests "
            "that have nothing to do with `description`. `content`: what `description` names."
        )
    )
    description: str = Field(
        "",
        max_length=1000,
        validate_default=True,
        description="The agent's subject for `off_subject`, and a category for `content`, for the model that judges.",
        examples=["threats and insults"],
    )
    action: Literal["ignore", "answer", "person", "end"] = Field(
        "ignore",
        description=(
            "`ignore`: the model is told not to act on the words, and goes on. `answer`: the agent says `text` instead "
            "of its answer. `person`: the caller waits for a person, as with `ask_for_person`. `end`: the agent says "
            "`text` and ends the call."
        ),
    )
    text: str = Field(
        "",
        max_length=1000,
        validate_default=True,
        description="Said with `answer`, where it is needed, and before `person` and `end`.",
        examples=["I am here for questions about your order only."],
    )

    @field_validator("description")
    @classmethod
    def _can_be_judged(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("watches") in ("off_subject", "content") and not value.strip():
            raise ValueError("is needed: a model judges by it")
        return value

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str, info: ValidationInfo) -> str:
        if info.data.get("action") == "answer" and not value.strip():
            raise ValueError("is needed, because the agent answers with it")
        return value


class AgentSettings(RequestBody):
    """Settings of an agent, each of which a draft can change.

    A stored agent has all three providers. A request may leave them out: the organization's first ones are chosen.
    """

    model_config = ConfigDict(frozen=True)

    system_prompt: Prompt = Field(
        "", description="The agent's instructions; `{{name}}` is replaced by a value of the call's `metadata`."
    )
    llm_provider: Label | None = Field(
        None, description="One of the organization's providers; defaults to the first one."
    )
    llm_model: Label | None = Field(None, description="Name of the provider's model; null: the provider's default.")
    llm_temperature: float = Field(
        0.7, ge=0, le=2, description="Randomness of the model's words, from 0 (the same answers) to 2."
    )
    tts_provider: Label | None = Field(
        None, description="Provider of the voice, one of the organization's; defaults to the first one."
    )
    tts_voice_id: Label | None = Field(
        None, description="Id of the voice at the provider; null: the provider's default."
    )
    tts_model: Label | None = Field(
        None, description="Name of the voice provider's model; null: the provider's default."
    )
    voice_speed: float = Field(
        1.0,
        ge=0.5,
        le=2.0,
        description="Speed of the voice as a multiple of the normal one; not every provider can change it.",
    )
    pronunciations: dict[Reading, Reading] = Field(
        {},
        max_length=200,
        description="Pronunciation of words, in any letter case; an addition.",
        examples=[{"Siobhan": "Shivawn"}],
    )
    stt_provider: Label | None = Field(
        None, description="Provider that transcribes, one of the organization's; defaults to the first one."
    )
    stt_model: Label | None = Field(
        None, description="Name of the transcribing provider's model; null: the provider's default."
    )
    stt_language: str = Field(
        "en-US",
        pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        max_length=35,
        description="BCP 47 tag; `mul` if callers switch between languages.",
    )
    greeting_message: Prompt = Field("", description="The agent's first words; empty: the agent waits for the caller.")
    end_call_silence_seconds: int = Field(
        30, ge=5, le=600, description="Seconds without speech of either party after which the call ends."
    )
    max_call_duration_seconds: int = Field(
        1800, ge=30, le=14_400, description="Seconds after which the call ends, whatever happens in it."
    )
    allow_interruptions: bool = Field(
        True, description="False: the agent finishes what it says, and then answers what the caller said meanwhile."
    )
    interruption_min_words: int = Field(
        1,
        ge=0,
        le=10,
        description=(
            "Number of words that interrupt the agent; 0: any speech interrupts. From 1 on, backchannels such as "
            '"mhm" and "okay" never do.'
        ),
    )
    vad_confidence: Share = Field(0.7, description="Least probability, from 0 to 1, at which audio counts as speech.")
    vad_start_secs: Share = Field(
        0.2, description="Seconds of speech after which the caller counts as speaking, from 0 to 1."
    )
    vad_min_volume: Share = Field(0.6, description="Least volume, from 0 to 1, at which audio counts as speech.")
    webhook_url: Url | None = Field(None, description="Receives the events of this agent's calls, signed.")
    knowledge_base_ids: list[ReferenceId] = Field(
        default_factory=list,
        max_length=100,
        description="Knowledge bases that the agent searches, in calls and text messages; an addition.",
    )
    appointment_type_ids: list[ReferenceId] = Field(
        default_factory=list,
        max_length=20,
        description="Appointment types that the agent books, moves, and cancels; an addition.",
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
    allowed_numbers: list[Destination] = Field(
        default_factory=list,
        max_length=100,
        description=(
            "Phone numbers to which the model may transfer calls and send text messages, and clients (`client:<name>`) "
            "to which it may transfer calls, besides those in `system_prompt`; an addition."
        ),
        examples=[["+15550100001", "client:reception"]],
    )
    any_number: bool = Field(
        False,
        description=(
            "The model may transfer calls and send text messages to any number that the organization may call, also "
            "to one that a caller asks for; an addition."
        ),
    )
    queue_wait_seconds: int | None = Field(
        None,
        ge=10,
        le=3600,
        description=(
            "Longest wait of a caller for a person; null: the agent has no `ask_for_person` and `note_callback`. An "
            "addition."
        ),
    )
    queue_fallback: Literal["agent", "callback"] = Field(
        "agent",
        description=(
            "What happens if no person answers in time. `agent`: the agent says so and goes on. `callback`: a callback "
            "is noted, too. An addition."
        ),
    )
    handoffs: list[Handoff] = Field(
        default_factory=list,
        max_length=20,
        description="Other agents to which this one hands conversations over, each once; an addition.",
    )
    variables: list[AgentVariable] = Field(
        default_factory=list,
        max_length=30,
        description="Values that the agent learns in a conversation, besides `metadata`; an addition.",
    )
    claims: list[Claim] = Field(
        default_factory=list,
        max_length=30,
        description="Statements that the agent makes only if they are true, each once; an addition.",
    )
    banned_phrases: list[Reading] = Field(
        default_factory=list,
        max_length=200,
        description="Phrases that the agent does not say, in any letter case; an addition.",
        examples=[["guaranteed return"]],
    )
    banned_topics: list[BannedTopic] = Field(
        default_factory=list, max_length=20, description="Subjects that the agent does not talk about; an addition."
    )
    guardrails: list[Guardrail] = Field(
        default_factory=list,
        max_length=10,
        description="Words of the other side that the agent does not simply answer; an addition.",
    )
    check_model: Label | None = Field(
        None,
        description=(
            "Model of `llm_provider` that judges the caller's words for `guardrails`, and sentences of the agent that "
            "leave doubt; null: `llm_model`. An addition."
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
        default_factory=TurnDetection, description="Rules by which a caller who pauses has finished; an addition."
    )
    voicemail_policy: VoicemailPolicy = Field(
        default_factory=VoicemailPolicy,
        description="What happens when voicemail answers an outbound call; an addition.",
    )

    @field_validator("variables", "claims", "banned_topics", "guardrails")
    @classmethod
    def _are_named_once(cls, value: list[NamedT]) -> list[NamedT]:
        names = [each.name for each in value]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} is a duplicate")
        return value

    def list_handoff_ids(self) -> list[UUID]:
        """Return the ids of the agents to which this one hands over."""
        return [UUID(handoff.agent_id) for handoff in self.handoffs]

    def list_given(self) -> dict[str, object]:
        """Return the settings that were given and not left to their defaults, by name."""
        return {name: getattr(self, name) for name in self.model_fields_set & AgentSettings.model_fields.keys()}
