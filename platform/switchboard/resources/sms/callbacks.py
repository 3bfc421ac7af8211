"""Carrier callbacks about outbound messages. They may arrive late, twice, in any order, or before the carrier has
reported its message id.
"""

from uuid import UUID

import structlog
from sqlmodel import col

from switchboard.foundation.database import Database, TenantSession
from switchboard.plugin_sdk import TextMessageStatus
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.sender import record_carrier_opt_out
from switchboard.resources.sms.states import advance_message, correct_message_cost

logger = structlog.get_logger()


async def apply_message_event(
    database: Database,
    organization_id: UUID,
    carrier: str,
    status_report: TextMessageStatus,
    *,
    message_id: UUID | None,
) -> None:
    """Apply one event. `message_id` is the id in the callback's address, if it has one."""
    async with database.tenant(organization_id) as session:
        message = await _find(session, carrier, status_report.carrier_text_id, message_id)
        if message is None:
            logger.warning("callback for an unknown message", carrier=carrier)
            return
        await advance_message(session, message, status_report.status, error=status_report.error_message)
        await correct_message_cost(session, message, segments=status_report.segments, cost=status_report.cost)
        message.carrier_text_id = message.carrier_text_id or status_report.carrier_text_id
    if status_report.opted_out:
        await record_carrier_opt_out(database, message)


async def _find(
    session: TenantSession, carrier: str, carrier_text_id: str, message_id: UUID | None
) -> SmsMessage | None:
    rows = sms.list_messages(session).where(col(SmsMessage.carrier) == carrier, col(SmsMessage.direction) == "outbound")
    named = (
        col(SmsMessage.carrier_text_id) == carrier_text_id if message_id is None else col(SmsMessage.id) == message_id
    )
    return (await session.exec(rows.where(named).with_for_update())).one_or_none()
