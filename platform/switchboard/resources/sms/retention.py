"""Text messages that retention deletes, and the conversations that it leaves empty."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from switchboard.foundation.object_store import ObjectStore
from switchboard.resources.billing.queries import ADD_MESSAGES, keep_usage
from switchboard.resources.deliveries.queries import list_undelivered_subjects
from switchboard.resources.identity.queries import ExpiringRows
from switchboard.resources.identity.retention import RetainedData, RetentionDeleter
from switchboard.resources.sms import queries
from switchboard.resources.sms.media import build_media_key


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDeleter(RetentionDeleter):
    """Deletes text messages with their files. A closed conversation stays without messages, because it records that
    the contact has sent STOP.
    """

    recordings: ObjectStore
    data: RetainedData = "messages"
    rows: ExpiringRows = queries.SETTLED_MESSAGES

    async def delete_batch(self, organization_id: UUID, cutoff: datetime) -> int:
        """Delete a batch of messages, and the conversations that have none left: the files first, so that a crash
        leaves none behind. Raises `ObjectStoreAway`.
        """
        async with self.database.read(organization_id) as session:
            awaited = await list_undelivered_subjects(session)
            ids = await queries.list_expired_messages(session, self.rows, cutoff, awaited=awaited, most=self.most)
            files = await queries.list_media_ids(session, ids)
        await self.recordings.delete([build_media_key(organization_id, file) for file in files])
        async with self.database.write(organization_id) as session:
            ids = await queries.lock_messages(session, ids, self.rows.conditions)
            await keep_usage(session, ADD_MESSAGES, ids)
            await queries.delete_empty_conversations(session, await queries.delete_messages(session, ids), cutoff)
        return len(ids)
