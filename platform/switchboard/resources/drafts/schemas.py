"""API schemas of drafts, an addition to the specification."""

from uuid import UUID

from pydantic import ConfigDict, Field

from switchboard.foundation.web.schemas import Answer, CreatedAt, ReferenceId, RequestBody, UpdatedAt
from switchboard.resources.agents.models import AgentDraft
from switchboard.resources.agents.schemas import AgentChanges


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
