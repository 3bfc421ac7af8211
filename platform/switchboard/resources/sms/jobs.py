"""Work on text messages."""

from typing import Final
from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.work import Work
from switchboard.resources.sms import queries
from switchboard.resources.sms.auto_reply import answer_text
from switchboard.resources.sms.media import fetch_media
from switchboard.resources.sms.sender import MessageSender, ask_for_status


async def send_text(
    sender: MessageSender, database: Database, providers: Providers, *, organization_id: UUID, message_id: UUID
) -> None:
    """Send a queued message, or give one up whose sending was interrupted; of one that is sent, ask whether it was
    delivered.
    """
    await sender.send_due_message(organization_id, message_id)
    await ask_for_status(database, providers, organization_id, message_id)


WORK: Final = (
    Work(send_text, queries.MESSAGES_TO_SEND, at_once=32),
    Work(answer_text, queries.CONVERSATIONS_TO_ANSWER, seconds=1),
    Work(fetch_media, queries.FILES_TO_FETCH, at_once=8),
)
