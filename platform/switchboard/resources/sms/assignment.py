"""Sharing conversations out: the member who has one, and those that are resolved."""

from uuid import UUID

from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.resources.identity.models import Membership
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.schemas import SmsConversationQuery, SmsConversationRow, SmsConversationUpdate


def filter_conversations(session: TenantSession, query: SmsConversationQuery) -> SelectOfScalar[SmsConversation]:
    """Select the conversations that a query asks for."""
    rows = session.select(SmsConversation)
    if query.assigned_to is not None:
        rows = rows.where(col(SmsConversation.assigned_to) == query.assigned_to)
    if query.resolved is not None:
        resolved = col(SmsConversation.resolved_at)
        rows = rows.where(resolved.is_not(None) if query.resolved else resolved.is_(None))
    if query.waiting is not None:
        waiting = col(SmsConversation.waiting_since)
        rows = rows.where(waiting.is_not(None) if query.waiting else waiting.is_(None))
    return rows


async def update_conversation(
    session: TenantSession, conversation_id: UUID, data: SmsConversationUpdate
) -> SmsConversation:
    """Assign a conversation to a member, who then answers in the agent's place, or resolve it.

    Resolving ends the assignment: when the contact writes again, the agent answers. Raises `NotFound`, and
    `ValidationFailed` for a user who is not a member, or for a conversation that is to be assigned and resolved.
    """
    if data.assigned_to is not None and data.resolved:
        raise ValidationFailed.field("resolved", "ends the assignment; give one of both")
    conversation = await sms.get_conversation(session, conversation_id, lock=True)
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


async def _assign(session: TenantSession, conversation: SmsConversation, user_id: UUID | None) -> None:
    if user_id is not None:
        member = select(Membership.id).where(session.owns(Membership), col(Membership.user_id) == user_id)
        if (await session.exec(member)).first() is None:
            raise ValidationFailed.field("assigned_to", "is not a member of the organization")
        conversation.resolved_at = None
        if conversation.reply_due_at is not None:
            conversation.waiting_since = conversation.last_inbound_at
            conversation.reply_due_at = conversation.answering_until = None
    conversation.assigned_to = user_id
