"""Text messages that retention deletes, and the conversations that it leaves empty."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlmodel import col, delete, select

from switchboard.foundation.database import is_among, is_not_among
from switchboard.foundation.object_store import ObjectStore
from switchboard.resources.billing.deleted_usage import ADD_MESSAGES, keep_usage
from switchboard.resources.deliveries.retention import list_undelivered_subjects
from switchboard.resources.identity.retention import SETTLED_BEFORE, ExpiringRows, RetainedData, RetentionDeleter
from switchboard.resources.sms.media import build_media_key
from switchboard.resources.sms.models import SmsConversation, SmsMedia, SmsMessage

# The agent answers with the conversation before its eyes, so a message waits while an answer is due.
_ANSWER_DUE = (
    select(SmsConversation.id)
    .where(
        col(SmsConversation.organization_id) == col(SmsMessage.organization_id),
        col(SmsConversation.id) == col(SmsMessage.conversation_id),
        col(SmsConversation.reply_due_at).is_not(None),
    )
    .exists()
)
_FILE_DUE = (
    select(SmsMedia.id)
    .where(
        col(SmsMedia.organization_id) == col(SmsMessage.organization_id),
        col(SmsMedia.message_id) == col(SmsMessage.id),
        col(SmsMedia.fetch_due_at).is_not(None),
    )
    .exists()
)
SETTLED_MESSAGES: Final = ExpiringRows(
    SmsMessage,
    (
        col(SmsMessage.created_at) < SETTLED_BEFORE,
        col(SmsMessage.status).not_in(("queued", "sending")),
        ~_ANSWER_DUE,
        ~_FILE_DUE,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeleter(RetentionDeleter):
    """Deletes text messages with their files. A closed conversation stays without messages, because it records that
    the contact has sent STOP.
    """

    recordings: ObjectStore
    data: RetainedData = "messages"
    rows: ExpiringRows = SETTLED_MESSAGES

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete a batch of messages, and the conversations that have none left: the files first, so that a crash
        leaves none behind. Raises `ObjectStoreAway`.
        """
        async with self.database.read(organization_id) as session:
            awaited = await list_undelivered_subjects(session)
            wanted = self.rows.select_ids(session, cutoff, most=self.most).where(
                is_not_among(col(SmsMessage.id), awaited)
            )
            ids = (await session.exec(wanted)).all()
            theirs = select(SmsMedia.id).where(session.owns(SmsMedia), is_among(col(SmsMedia.message_id), ids))
            files = (await session.exec(theirs)).all()
        await self.recordings.delete([build_media_key(organization_id, file) for file in files])
        async with self.database.write(organization_id) as session:
            left = select(SmsMessage.id).where(
                session.owns(SmsMessage), is_among(col(SmsMessage.id), ids), *self.rows.conditions
            )
            ids = (await session.exec(left.with_for_update(skip_locked=True, of=SmsMessage))).all()
            await keep_usage(session, ADD_MESSAGES, ids)
            emptied = await session.exec(
                delete(SmsMessage)
                .where(session.owns(SmsMessage), is_among(col(SmsMessage.id), ids))
                .returning(col(SmsMessage.conversation_id))
            )
            message = select(SmsMessage.id).where(
                session.owns(SmsMessage), col(SmsMessage.conversation_id) == col(SmsConversation.id)
            )
            await session.exec(
                delete(SmsConversation).where(
                    session.owns(SmsConversation),
                    is_among(col(SmsConversation.id), set(emptied.scalars())),
                    col(SmsConversation.status) == "open",
                    col(SmsConversation.last_message_at) < cutoff,
                    ~message.exists(),
                )
            )
        return len(ids)
