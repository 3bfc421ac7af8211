"""API schemas of agents."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

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
from switchboard.resources.agents.conversation_settings import (
    ExtractionSchema,
    Redaction,
    TurnDetection,
    VoicemailPolicy,
)
from switchboard.resources.agents.declared_tools import DeclaredTool, Url
from switchboard.resources.agents.models import Agent, AgentVersion
from switchboard.resources.disclosure.settings import DisclosureSettings

Label = Annotated[str, Field(min_length=1, max_length=255)]
Prompt = Annotated[str, Field(max_length=100_000)]
Share = Annotated[float, Field(ge=0, le=1)]
Secret = Annotated[str, Field(min_length=1, max_length=255)]
Reading = Annotated[str, Field(min_length=1, max_length=255, pattern=r"\S")]
Status = Literal["active", "paused"]


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
