"""API schemas of text messages."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from switchboard.engine.conversation.call import InterventionAction, InterventionRule
from switchboard.foundation.encryption.content import PLAIN
from switchboard.foundation.events.catalog import Direction, MessageStatus
from switchboard.foundation.web.schemas import (
    Answer,
    CreatedAt,
    Dollars,
    Moment,
    PageQuery,
    PartialBody,
    PhoneNumberText,
    ReferenceId,
    RequestBody,
    show_example,
)
from switchboard.resources.sms.models import SmsConversation

MAX_BODY_CHARACTERS = 1600
MAX_MEDIA = 10
MediaUrl = Annotated[str, Field(min_length=1, max_length=2048, examples=["https://example.com/bread.jpg"])]
Body = Annotated[str, Field(min_length=1, max_length=MAX_BODY_CHARACTERS)]


class SmsCreate(RequestBody):
    """A text message to send."""

    model_config = show_example(
        to_number="+15550100001", from_number_id="019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c12", body="Your bread is ready."
    )

    to_number: PhoneNumberText = Field(description="E.164 number of the recipient.")
    from_number_id: ReferenceId = Field(description="One of the organization's phone numbers.")
    body: Body = Field(description="Text of the message, 1 to 1600 characters.")
    media_urls: list[MediaUrl] = Field(
        default_factory=list,
        max_length=MAX_MEDIA,
        description="Public addresses of up to 10 files, which the carrier fetches and sends; an addition.",
    )


class Reply(RequestBody):
    """A user's reply in a conversation."""

    body: Body = Field(description="Text of the message, 1 to 1600 characters.")


class SmsMessageQuery(PageQuery):
    """Page of a conversation's messages."""

    limit: int = Field(100, ge=1, le=500, description="Maximum number of messages on the page.")


class MessageIntervention(Answer):
    """Something that an agent was kept from writing, or words of the contact that met a guardrail."""

    rule: InterventionRule = Field(
        description="Kind of rule: `claim`, `phrase`, and `topic` are about the agent's words, the others about the "
        "contact's."
    )
    name: str = Field(description="Name of the claim, the topic, or the guardrail, or the phrase.")
    action: InterventionAction = Field(
        description="`held_back`: the agent did not write it; otherwise the guardrail's action."
    )


class SmsMessageOut(Answer):
    """A text message."""

    id: UUID = Field(description="Id of the text message.")
    conversation_id: UUID = Field(description="Id of the conversation.")
    direction: Direction = Field(description="`inbound`: from the contact. `outbound`: to the contact.")
    from_number: str = Field(description="E.164 number of the sender.")
    to_number: str = Field(description="E.164 number of the recipient.")
    body: Annotated[str, PLAIN] = Field(description="Text of the message.")
    status: MessageStatus = Field(description="State of the delivery; an inbound message is `received`.")
    segments: int = Field(description="Number of segments that carriers bill; an addition.")
    cost: Dollars = Field(
        description=(
            "Cost of the segments, once the carrier has accepted the message, and of the model that wrote it; an "
            "addition."
        )
    )
    author: Literal["contact", "api", "agent", "automation", "person", "platform"] = Field(
        description="`platform` wrote the replies to STOP, START, and HELP; an addition."
    )
    agent_id: UUID | None = Field(
        description="Id of the agent that wrote it, also of one that was deleted since; null for another author. An "
        "addition."
    )
    interventions: list[MessageIntervention] = Field(
        description="What the agent was kept from writing, and the guardrail that the contact's words met; an addition."
    )
    media_urls: Annotated[list[str], PLAIN] = Field(
        description="Addresses of the files that the message has; an addition."
    )
    error_message: str | None = Field(description="Why it failed or was not delivered; an addition.")
    created_at: CreatedAt


class SmsConversationQuery(PageQuery):
    """Filters of the conversations."""

    assigned_to: UUID | None = Field(None, description="Id of the member who has the conversations; an addition.")
    resolved: bool | None = Field(None, description="Whether the conversations are resolved; an addition.")
    waiting: bool | None = Field(None, description="Whether the contact waits for a person; an addition.")


class SmsConversationUpdate(PartialBody):
    """Changes to a conversation."""

    model_config = show_example(resolved=True)
    assigned_to: UUID | None = Field(
        None, description="Id of the member who answers in the agent's place; null: the agent answers."
    )
    resolved: bool = Field(False, description="Resolve the conversation, which ends its assignment, or open it again.")


class SmsConversationRow(Answer):
    """All messages between one of the organization's phone numbers and one contact."""

    id: UUID = Field(description="Id of the conversation.")
    phone_number_id: UUID = Field(description="Id of the organization's phone number.")
    contact_number: str = Field(description="E.164 number of the contact.")
    status: Literal["open", "closed"] = Field(description="`closed`: the contact has sent STOP.")
    last_message_at: Moment = Field(description="Time of the latest message.")
    assigned_to: UUID | None = Field(
        description="Id of the member who answers in the agent's place; null if the agent does; an addition."
    )
    resolved_at: Moment | None = Field(
        description="When the conversation was resolved; null once the contact writes again; an addition."
    )
    waiting_since: Moment | None = Field(
        description="Since when a message of the contact waits for a person, because no agent answers; an addition."
    )
    created_at: CreatedAt


class SmsConversationOut(SmsConversationRow):
    """All messages between one of the organization's phone numbers and one contact."""

    resolved: bool = Field(description="Whether the conversation is resolved; an addition.")
    unread_count: int | None = Field(
        description="Messages that the user of the access token has not read; null for an API key; an addition."
    )

    @classmethod
    def from_row(
        cls, conversation: SmsConversation | SmsConversationRow, unread_count: int | None
    ) -> "SmsConversationOut":
        fields = {name: getattr(conversation, name) for name in SmsConversationRow.model_fields}
        return cls.model_validate(
            {**fields, "resolved": conversation.resolved_at is not None, "unread_count": unread_count}
        )


class MediaLinkOut(Answer):
    """Link to a file of a received message that needs no credential until it expires."""

    url: str = Field(description="Address of the file.")
    expires_at: Moment = Field(description="Time from which the address is refused.")
    content_type: str = Field(description="Content type of the file, such as `image/jpeg`.")
