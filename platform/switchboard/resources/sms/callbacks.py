"""Carrier callbacks about outbound messages. They may arrive late, twice, in any order, or before the carrier has
reported its message id.
"""

import asyncio
from dataclasses import dataclass
from uuid import UUID

import structlog
from sqlmodel import col

from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.request_spans import span_request
from switchboard.foundation.database import Database, TenantSession, now
from switchboard.plugin_sdk import ProviderError, TelephonyProvider, TextMessageStatus
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.models import SmsMessage
from switchboard.resources.sms.sender import CARRIER_SECONDS, record_carrier_opt_out
from switchboard.resources.sms.states import advance_message, correct_message_cost, find_next_look

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


# Carriers are asked for the status of text messages that they have accepted, and about which no report has come.


@dataclass(frozen=True, slots=True)
class LostReports:
    """Asks carriers what their reports would have said."""

    database: Database
    providers: Providers

    async def ask_for_status(self, organization_id: UUID, message_id: UUID) -> None:
        """Ask the carrier for the status of a sent message whose time has come, and apply it as its report."""
        async with self.database.tenant(organization_id) as session:
            due = sms.list_messages(session).where(
                col(SmsMessage.id) == message_id, col(SmsMessage.status) == "sent", col(SmsMessage.watch_at) <= now()
            )
            message = (await session.exec(due.with_for_update())).one_or_none()
            if message is None:
                return
            message.watch_at = find_next_look(message)
        if message.carrier_text_id is None:
            return
        try:
            async with (
                asyncio.timeout(CARRIER_SECONDS),
                self.providers.use(organization_id, TelephonyProvider, message.carrier) as carrier,
            ):
                with span_request("find_text_status", carrier.name):
                    report = await carrier.find_text_status(message.carrier_text_id)
        except (ProviderError, TimeoutError) as error:
            logger.warning("the carrier did not tell a message's status", message_id=str(message.id), reason=str(error))
            return
        if report is not None:
            await apply_message_event(self.database, organization_id, message.carrier, report, message_id=message_id)
