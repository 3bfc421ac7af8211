"""The audit log: which user, key, or application changed what, or read a recording or a transcript.

Services call `record_audit` once per effect, in the transaction of the effect, so that the API and the dashboard write
the same entry. An entry names the changed resource and the fields that were given, for an update those that
changed, and never a value.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Session
from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.foundation.database import RecordTable, WriteSession, partition_by_month

MAX_SUBJECT_CHARACTERS: Final = 1000


class AuditAction(StrEnum):
    """The actions of the audit log: `<resource>.<past participle>`."""

    AGENT_CREATED = "agent.created"
    AGENT_UPDATED = "agent.updated"
    AGENT_DELETED = "agent.deleted"
    AGENT_DRAFT_SAVED = "agent_draft.saved"
    AGENT_DRAFT_DISCARDED = "agent_draft.discarded"
    AGENT_TOOL_TESTED = "agent_tool.tested"
    AGENT_VERSION_RESTORED = "agent_version.restored"
    API_KEY_CREATED = "api_key.created"
    API_KEY_ROTATED = "api_key.rotated"
    API_KEY_REVOKED = "api_key.revoked"
    APPOINTMENT_BOOKED = "appointment.booked"
    APPOINTMENT_MOVED = "appointment.moved"
    APPOINTMENT_UPDATED = "appointment.updated"
    APPOINTMENT_CANCELED = "appointment.canceled"
    APPOINTMENT_TYPE_CREATED = "appointment_type.created"
    APPOINTMENT_TYPE_UPDATED = "appointment_type.updated"
    APPOINTMENT_TYPE_DELETED = "appointment_type.deleted"
    AUTOMATION_CREATED = "automation.created"
    AUTOMATION_UPDATED = "automation.updated"
    AUTOMATION_DELETED = "automation.deleted"
    AUTOMATION_RUN_RETRIED = "automation_run.retried"
    BILLING_CREDITED = "billing.credited"
    BROWSER_CALL_TOKEN_CREATED = "browser_call_token.created"  # noqa: S105 - the name of an action
    CALENDAR_CONNECTED = "calendar.connected"
    CALENDAR_UPDATED = "calendar.updated"
    CALENDAR_DISCONNECTED = "calendar.disconnected"
    CALENDAR_DELETED = "calendar.deleted"
    CALLBACK_TAKEN = "callback.taken"
    CALL_CREATED = "call.created"
    CALL_MONITORED = "call.monitored"
    CALL_TAKEN_OVER = "call.taken_over"
    CALL_HANDED_BACK = "call.handed_back"
    CALL_WHISPERED = "call.whispered"
    CAMPAIGN_CREATED = "campaign.created"
    CAMPAIGN_UPDATED = "campaign.updated"
    CAMPAIGN_CONTACTS_ADDED = "campaign.contacts_added"
    CAMPAIGN_STARTED = "campaign.started"
    CAMPAIGN_PAUSED = "campaign.paused"
    CAMPAIGN_RESUMED = "campaign.resumed"
    CAMPAIGN_CANCELED = "campaign.canceled"
    CAMPAIGN_DELETED = "campaign.deleted"
    CONTACT_CREATED = "contact.created"
    CONTACT_UPDATED = "contact.updated"
    CONTACTS_IMPORTED = "contacts.imported"
    CONTACT_DELETED = "contact.deleted"
    DATA_EXPORTED = "data.exported"
    DESTINATIONS_NARROWED = "destinations.narrowed"
    DO_NOT_CALL_ENTRY_CREATED = "do_not_call_entry.created"
    DO_NOT_CALL_ENTRY_DELETED = "do_not_call_entry.deleted"
    INTEGRATION_UPDATED = "integration.updated"
    INVITATION_CREATED = "invitation.created"
    INVITATION_WITHDRAWN = "invitation.withdrawn"
    KNOWLEDGE_BASE_CREATED = "knowledge_base.created"
    KNOWLEDGE_BASE_UPDATED = "knowledge_base.updated"
    KNOWLEDGE_BASE_DELETED = "knowledge_base.deleted"
    KNOWLEDGE_DOCUMENT_CREATED = "knowledge_document.created"
    KNOWLEDGE_DOCUMENT_RETRIED = "knowledge_document.retried"
    KNOWLEDGE_DOCUMENT_DELETED = "knowledge_document.deleted"
    MEMBER_ADDED = "member.added"
    MEMBER_JOINED = "member.joined"
    MEMBER_ROLE_CHANGED = "member.role_changed"
    MEMBER_REMOVED = "member.removed"
    OAUTH_CLIENT_CREATED = "oauth_client.created"
    OAUTH_CLIENT_UPDATED = "oauth_client.updated"
    OAUTH_CLIENT_SECRET_ROTATED = "oauth_client.secret_rotated"  # noqa: S105 - the name of an action
    OAUTH_CLIENT_DELETED = "oauth_client.deleted"
    OAUTH_GRANT_CREATED = "oauth_grant.created"
    OAUTH_GRANT_REVOKED = "oauth_grant.revoked"
    ORGANIZATION_MOVE_GIVEN_UP = "organization.move_given_up"
    ORGANIZATION_RESUMED = "organization.resumed"
    ORGANIZATION_SUSPENDED = "organization.suspended"
    ORGANIZATION_UPDATED = "organization.updated"
    OUTBOUND_PAUSED = "outbound.paused"
    PERSON_ERASED = "person.erased"
    PERSON_EXPORTED = "person.exported"
    PHONE_NUMBER_ENTERED = "phone_number.entered"
    PHONE_NUMBER_ORDERED = "phone_number.ordered"
    PHONE_NUMBER_UPDATED = "phone_number.updated"
    PHONE_NUMBER_RELEASED = "phone_number.released"
    PRIVACY_EXPORT_READ = "privacy_export.read"
    PRIVACY_REQUEST_CREATED = "privacy_request.created"
    PROVIDER_SAVED = "provider.saved"
    PROVIDER_MOVED = "provider.moved"
    PROVIDER_REMOVED = "provider.removed"
    RECORDING_READ = "recording.read"
    RECORDINGS_KEY_DESTROYED = "recordings_key.destroyed"
    TEXTS_KEY_DESTROYED = "texts_key.destroyed"
    TEXTS_REENCRYPTED = "texts.reencrypted"
    SETUP_DISMISSED = "setup.dismissed"
    SIMULATION_CREATED = "simulation.created"
    SMS_CONVERSATION_UPDATED = "sms_conversation.updated"
    SMS_MEDIA_READ = "sms_media.read"
    SMS_MESSAGE_SENT = "sms_message.sent"
    SUPPORT_ACCESS_CHANGED = "support_access.changed"
    SUPPORT_SESSION_STARTED = "support_session.started"
    SUPPORT_SESSION_ENDED = "support_session.ended"
    TENANT_FILE_APPLIED = "tenant_file.applied"
    TENANT_FILE_EXPORTED = "tenant_file.exported"
    TRANSCRIPT_READ = "transcript.read"
    USER_EMAIL_VERIFIED = "user.email_verified"
    USER_SECOND_FACTOR_ADDED = "user.second_factor_added"
    USER_SECOND_FACTOR_REMOVED = "user.second_factor_removed"
    USER_PASSKEY_ADDED = "user.passkey_added"
    USER_PASSKEY_REMOVED = "user.passkey_removed"
    USER_PASSWORD_CHANGED = "user.password_changed"  # noqa: S105 - the name of an action
    USER_SESSIONS_ENDED = "user.sessions_ended"
    WEBHOOK_DELIVERY_REPLAYED = "webhook_delivery.replayed"
    WEBHOOK_ENDPOINT_CREATED = "webhook_endpoint.created"
    WEBHOOK_ENDPOINT_UPDATED = "webhook_endpoint.updated"
    WEBHOOK_ENDPOINT_DELETED = "webhook_endpoint.deleted"
    WEBHOOK_ENDPOINT_DISABLED = "webhook_endpoint.disabled"
    WEBHOOK_ENDPOINT_REPLAYED = "webhook_endpoint.replayed"
    WEBHOOK_ENDPOINT_SECRET_ROTATED = "webhook_endpoint.secret_rotated"  # noqa: S105 - the name of an action
    WEBHOOK_ENDPOINT_TESTED = "webhook_endpoint.tested"
    WIDGET_CREATED = "widget.created"
    WIDGET_UPDATED = "widget.updated"
    WIDGET_DELETED = "widget.deleted"


class AuditEntry(RecordTable, table=True):
    """One entry of an organization's audit log.

    `actor` is `key:<id>`, `user:<id>`, `user:<id> via <client_id>` (an application), `operator`, or `system`. `action`
    is an `AuditAction`.
    """

    __tablename__ = "audit_entry"
    __table_args__ = (Index(None, "organization_id", "created_at"), partition_by_month("id"))

    actor: str
    action: str
    subject: str


def record_audit(session: WriteSession, action: AuditAction, subject: object, *, fields: Iterable[str] = ()) -> None:
    """Record an effect of the session's actor on `subject`, with the names of the fields that were given.

    A transaction without an actor belongs to a background job and has no entry. What a job does for the organization is
    in the history of the automation, campaign, or agent that asked for it.
    """
    if session.actor is not None:
        record_audit_as(session, session.organization_id, session.actor, action, subject, fields=fields)


def record_audit_as(
    session: AsyncSession | Session,
    organization_id: UUID,
    actor: str,
    action: AuditAction,
    subject: object,
    *,
    fields: Iterable[str] = (),
) -> None:
    """Record an effect in a transaction that has no actor, or that crosses organizations."""
    text = " ".join(part for part in (str(subject), ", ".join(sorted(fields))) if part)[:MAX_SUBJECT_CHARACTERS]
    session.add(AuditEntry(organization_id=organization_id, actor=actor, action=action.value, subject=text))
