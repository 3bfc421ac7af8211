"""API schemas of agents."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Destination,
    Name,
    PageQuery,
    PartialBody,
    ReferenceId,
    RequestBody,
    UpdatedAt,
)
from switchboard.resources.agents.conversation_settings import (
    ExtractionSchema,
    Redaction,
    TurnDetection,
    VoicemailPolicy,
)
from switchboard.resources.agents.declared_tools import DeclaredTool, Url
from switchboard.resources.agents.models import Agent, AgentDraft, AgentVersion
from switchboard.resources.disclosure.settings import DisclosureSettings

Label = Annotated[str, Field(min_length=1, max_length=255)]
Prompt = Annotated[str, Field(max_length=100_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Secret = Annotated[str, Field(min_length=1, max_length=255)]
Reading = Annotated[str, Field(min_length=1, max_length=255, pattern=r"\S")]
Status = Literal["active", "paused"]


class DraftableFields(RequestBody):
    """Fields of an agent that a draft can change. A missing field keeps its default or its value."""

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
    noise_suppression: Literal["off", "rnnoise"] = Field(
        "off",
        description=(
            "`rnnoise`: noise is removed from the caller's audio before voice activity detection and transcription. It "
            "can help against loud, steady noise, cuts callers off more often in most others, and takes many times the "
            "processor time of a call without it. Recordings keep the noise. An addition."
        ),
    )
    voicemail_policy: VoicemailPolicy = Field(
        default_factory=VoicemailPolicy,
        description="What happens when voicemail answers an outbound call; an addition.",
    )


class AgentFields(DraftableFields):
    """Fields that create and update share."""

    required_simulations: list[Name] = Field(
        default_factory=list,
        max_length=50,
        description=(
            "Names of the simulations that a draft must pass before it is published. With any, settings are changed by "
            "a draft only. An addition."
        ),
        examples=[["Opening hours"]],
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
    status: Status = Field(
        "active", description="A `paused` agent takes and places no calls, and answers no text messages."
    )
    timezone: str = Field("UTC", max_length=64, description="IANA time zone; not returned.")


class AgentChanges(DraftableFields, PartialBody):
    """The fields that a draft changes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"greeting_message": "Good day, how can I help?"}]})

    name: Name = ""
    timezone: str = Field("UTC", max_length=64, description="IANA time zone.")

    @classmethod
    def of_update(cls, update: AgentUpdate) -> "AgentChanges":
        """Return the changes of an update that a draft can make."""
        fields = update.model_fields_set & cls.model_fields.keys()
        return cls.model_construct(_fields_set=fields, **{name: getattr(update, name) for name in fields})

    def as_update(self) -> AgentUpdate:
        """Return the update of the agent that makes these changes."""
        fields = self.model_fields_set
        return AgentUpdate.model_construct(_fields_set=set(fields), **{name: getattr(self, name) for name in fields})


class AgentQuery(PageQuery):
    """Filters of the agent list."""

    agent_type: str | None = Field(None, max_length=64, description="Kind of agent; there is only `voice`.")


class AgentOut(Answer):
    """An agent."""

    id: UUID = Field(description="Id of the agent.")
    name: str
    agent_type: Literal["voice"] = Field(description="Kind of agent; there is only `voice`.")
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
    knowledge_base_ids: list[UUID]
    tools: list[DeclaredTool]
    disabled_tools: list[str]
    allowed_numbers: list[str]
    any_number: bool
    queue_wait_seconds: int | None
    queue_fallback: Literal["agent", "callback"]
    extraction_schema: ExtractionSchema | None
    redaction: Redaction | None
    disclosure: DisclosureSettings | None
    turn_detection: TurnDetection
    noise_suppression: Literal["off", "rnnoise"]
    voicemail_policy: VoicemailPolicy
    required_simulations: list[str]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def from_row(cls, agent: Agent) -> "AgentOut":
        return cls.model_validate(agent)


class AgentVersionOut(Answer):
    """An agent as of one update."""

    version: int = Field(description="Number of the version, from 1.")
    settings: dict[str, object] = Field(description="Fields of the agent as of this version, without secrets.")
    created_at: CreatedAt

    @classmethod
    def from_row(cls, version: AgentVersion) -> "AgentVersionOut":
        return cls.model_validate(version)


class DraftSave(RequestBody):
    """A draft to save, and the one that it replaces."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"revision": None, "changes": {"greeting_message": "Good day!"}}]}
    )

    revision: ReferenceId | None = Field(
        description="Revision of the draft that you read; null if there was none. Another one is a 409."
    )
    changes: AgentChanges = Field(description="Fields to change, all that the draft shall have.")


class DraftPublish(RequestBody):
    """The draft to publish."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"revision": "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11"}]})
    revision: ReferenceId = Field(description="Revision of the draft that you read. Another one is a 409.")


class DraftOut(Answer):
    """An agent's draft."""

    agent_id: UUID = Field(description="Id of the agent.")
    revision: UUID = Field(description="Changes whenever the draft is saved with other changes.")
    base_version: int = Field(description="Version of the agent that the draft changes.")
    is_outdated: bool = Field(
        description="Other settings were published since; save the draft again to publish it on top of them."
    )
    changes: dict[str, object] = Field(description="Fields of the agent that differ from the published ones.")
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def from_row(cls, draft: AgentDraft, *, is_outdated: bool) -> "DraftOut":
        return cls.model_validate({**draft.model_dump(), "is_outdated": is_outdated})
