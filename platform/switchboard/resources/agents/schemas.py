"""API schemas of agents."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import ConfigDict, Field

from switchboard.engine.conversation.agent_settings import AgentSettings, Label
from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Name,
    PageQuery,
    PartialBody,
    ReferenceId,
    RequestBody,
    UpdatedAt,
    show_as_answer,
    show_example,
)
from switchboard.resources.agents.models import Agent, AgentDraft

Secret = Annotated[str, Field(min_length=1, max_length=255)]
Status = Literal["active", "paused"]


class AgentFields(AgentSettings):
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

    model_config = show_example(
        name="Front desk", system_prompt="You answer the phone of a bakery.", greeting_message="Hello!"
    )

    name: Name


class AgentUpdate(AgentFields, PartialBody):
    """A partial update of an agent."""

    model_config = show_example(greeting_message="Good day, how can I help?")

    name: Name = ""
    status: Status = Field(
        "active", description="A `paused` agent takes and places no calls, and answers no text messages."
    )
    timezone: str = Field("UTC", max_length=64, description="IANA time zone; not returned.")


class AgentChanges(AgentSettings, PartialBody):
    """The fields that a draft changes."""

    model_config = show_example(greeting_message="Good day, how can I help?")

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


class AgentState(Answer):
    """Fields of an agent's answer besides its settings."""

    id: UUID = Field(description="Id of the agent.")
    name: str
    agent_type: Literal["voice"] = Field(description="Kind of agent; there is only `voice`.")
    status: Status
    version: int = Field(description="Incremented by each update that changes something; an addition.")
    required_simulations: list[str]
    created_at: CreatedAt
    updated_at: UpdatedAt


class AgentOut(AgentSettings, AgentState):
    """An agent."""

    model_config = ConfigDict(extra="ignore", strict=False, json_schema_extra=show_as_answer)

    llm_provider: Label
    tts_provider: Label
    stt_provider: Label
    pronunciations: dict[str, str]

    @classmethod
    def from_row(cls, agent: Agent) -> "AgentOut":
        return cls.model_validate({**dict(agent), **dict(agent.settings)})


class AgentVersionOut(Answer):
    """An agent as of one update."""

    version: int = Field(description="Number of the version, from 1.")
    settings: dict[str, object] = Field(description="Fields of the agent as of this version, without secrets.")
    created_at: CreatedAt


class DraftSave(RequestBody):
    """A draft to save, and the one that it replaces."""

    model_config = show_example(revision=None, changes={"greeting_message": "Good day!"})

    revision: ReferenceId | None = Field(
        description="Revision of the draft that you read; null if there was none. Another one is a 409."
    )
    changes: AgentChanges = Field(description="Fields to change, all that the draft shall have.")


class DraftPublish(RequestBody):
    """The draft to publish."""

    model_config = show_example(revision="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11")
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
