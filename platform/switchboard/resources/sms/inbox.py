"""The inbox: conversations by latest message, for users who read, share out, and answer them."""

from typing import Literal, TypeAlias
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.web.errors import InvalidState, ValidationFailed
from switchboard.foundation.web.paging import lock_row
from switchboard.foundation.web.row_counts import count_rows
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.identity.queries import find_membership
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.queries import list_latest_conversations, select_conversations
from switchboard.resources.sms.schemas import SmsConversationQuery, SmsConversationRow, SmsConversationUpdate

InboxView: TypeAlias = Literal["open", "mine", "waiting", "resolved", "all"]


async def list_inbox(
    session: ReadSession, query: PageQuery, *, contact_number: str | None, view: InboxView, user_id: UUID
) -> tuple[list[SmsConversation], int]:
    """Return a page of the conversations, or of those with a number, latest message first, and the total.

    `mine` are those that the user has, `waiting` those that wait for a person.
    """
    shown = SmsConversationQuery(
        assigned_to=user_id if view == "mine" else None,
        waiting=True if view == "waiting" else None,
        resolved=view == "resolved" if view in ("open", "resolved") else None,
    )
    rows = select_conversations(session, shown, contact_number)
    return await list_latest_conversations(session, rows, query), await count_rows(session, rows)


async def reply_to_conversation(session: WriteSession, conversation_id: UUID, body: str) -> SmsMessage:
    """Save a user's answer to be sent, and clear the agent's due answer.

    Raises `NotFound`, `InvalidState` for a conversation whose number is no longer in use, and what `compose_message`
    raises.
    """
    conversation = await lock_row(session, SmsConversation, conversation_id)
    number = await numbers.find_active_number(session, conversation.phone_number_id)
    if number is None:
        raise InvalidState("The phone number of this conversation is no longer in use.")
    content = sms.MessageContent(body)
    message = await sms.compose_message(session, number, conversation.contact_number, content, author="person")
    conversation.reply_due_at = conversation.answering_until = None
    return message


# Sharing conversations out: the member who has one, and those that are resolved.


async def update_conversation(
    session: WriteSession, conversation_id: UUID, data: SmsConversationUpdate
) -> SmsConversation:
    """Assign a conversation to a member, who then answers in the agent's place, or resolve it.

    Resolving ends the assignment: when the contact writes again, the agent answers. Raises `NotFound`, and
    `ValidationFailed` for a user who is not a member, or for a conversation that is to be assigned and resolved.
    """
    if data.assigned_to is not None and data.resolved:
        raise ValidationFailed.field("resolved", "ends the assignment; give one of both")
    conversation = await lock_row(session, SmsConversation, conversation_id)
    is_resolved = conversation.resolved_at is not None
    given = data.keep_changes(SmsConversationRow.model_validate(conversation), resolved=is_resolved).model_fields_set
    if not given:
        return conversation
    if "assigned_to" in given:
        await _assign(session, conversation, data.assigned_to)
    if "resolved" in given:
        conversation.resolved_at = (conversation.resolved_at or now()) if data.resolved else None
        if data.resolved:
            conversation.assigned_to = conversation.waiting_since = None
    record_audit(session, AuditAction.SMS_CONVERSATION_UPDATED, conversation_id, fields=given)
    return conversation


async def _assign(session: WriteSession, conversation: SmsConversation, user_id: UUID | None) -> None:
    if user_id is not None:
        if await find_membership(session, user_id, session.organization_id) is None:
            raise ValidationFailed.field("assigned_to", "is not a member of the organization")
        conversation.resolved_at = None
        if conversation.reply_due_at is not None:
            conversation.waiting_since = conversation.last_inbound_at
            conversation.reply_due_at = conversation.answering_until = None
    conversation.assigned_to = user_id
