"""Send a message: a worker claims it, asks the carrier once, and records the response. The carrier is never asked
twice.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.engine.providers.request_spans import span_request
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.encryption.content import UNREADABLE, open_content
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.plugin_sdk import (
    CallbackUrls,
    OutboundTextMessage,
    OutcomeUnknown,
    ProviderError,
    TelephonyProvider,
    TextMessageStatus,
    UnsubscribedRecipient,
)
from switchboard.resources.sms import queries
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.keywords import obey_keyword
from switchboard.resources.sms.models import SmsConversation, SmsMessage
from switchboard.resources.sms.states import advance_message, correct_message_cost, find_next_look

logger = structlog.get_logger()
CARRIER_SECONDS = 30.0
CARRIER_PATIENCE = timedelta(seconds=60)
UNKNOWN_FATE = "The carrier never confirmed the message, so it was not sent again."


@dataclass(frozen=True, slots=True)
class MessageSender:
    database: Database
    providers: Providers
    settings: Settings

    async def send_due_message(self, organization_id: UUID, message_id: UUID) -> None:
        """Ask the carrier to send a queued message. A message whose sending was interrupted by a crash is given up.

        Carriers cannot be asked for a message by our id. A carrier that accepted it has reported so by callback, whose
        address names the message, and the message is no longer `sending`.
        """
        async with self.database.write(organization_id) as session:
            message = await _take_due_message(session, message_id)
            if message is None:
                return
            conversation = await get_row(session, SmsConversation, message.conversation_id)
            if message.author != "platform":
                refusal = await sms.find_text_refusal(session, conversation, is_accepted=True)
                if refusal is not None:
                    await advance_message(session, message, "failed", error=refusal.detail)
                    return
            await open_content(session, message)
            text = message.unsent_body if message.unsent_body.value else message.body
            if not text.is_readable:
                await advance_message(session, message, "failed", error=f"Not sent: {UNREADABLE}")
                return
            await advance_message(session, message, "sending")
            message.watch_at = now() + CARRIER_PATIENCE
            in_conversation = await queries.has_inbound_message(session, conversation.id)
        try:
            carrier_text_id = await self._request_sending(message, text.value or "", in_conversation=in_conversation)
        except UnsubscribedRecipient as error:
            await self._settle(message, error=error.message)
            await record_carrier_opt_out(self.database, message)
        except (OutcomeUnknown, TimeoutError):
            await self._settle(message, error=UNKNOWN_FATE)
        except ProviderError as error:
            await self._settle(message, error=error.message)
        else:
            await self._settle(message, carrier_text_id=carrier_text_id)

    async def _request_sending(self, message: SmsMessage, text: str, *, in_conversation: bool) -> str:
        async with (
            asyncio.timeout(CARRIER_SECONDS),
            self.providers.use(message.organization_id, TelephonyProvider, message.carrier) as carrier,
        ):
            if not carrier.capabilities.text_messages:
                raise ProviderError(f"{carrier.title} cannot send text messages", retryable=False)
            base = f"{self.settings.base_url}/carriers/{message.carrier}/{message.organization_id}/texts/{message.id}"
            order = OutboundTextMessage(
                str(message.id),
                message.from_number,
                message.to_number,
                text,
                CallbackUrls(events=base),
                tuple(message.media_urls.value),
                in_conversation=in_conversation,
            )
            with span_request("send_text_message", carrier.name):
                return await carrier.send_text_message(order)

    async def _settle(
        self, unsent: SmsMessage, *, carrier_text_id: str | None = None, error: str | None = None
    ) -> None:
        """Record the carrier's response; its callbacks may have arrived first and know more."""
        async with self.database.write(unsent.organization_id) as session:
            message = await queries.lock_outbound_message(session, unsent.id)
            if message is None:
                return
            message.carrier_text_id = message.carrier_text_id or carrier_text_id
            if error is None:
                await advance_message(session, message, "sent")
            elif message.status == "sending":
                await advance_message(session, message, "failed", error=error)


async def _take_due_message(session: WriteSession, message_id: UUID) -> SmsMessage | None:
    """Lock and return a queued message that is due. One whose sending was interrupted by a crash is given up."""
    message = await queries.lock_outbound_message(session, message_id)
    if message is None or message.watch_at is None or message.watch_at > now():
        return None
    if message.status == "sending":
        logger.warning("message given up by the reconciler", message_id=str(message.id))
        await advance_message(session, message, "failed", error=UNKNOWN_FATE)
    return message if message.status == "queued" else None


async def record_carrier_opt_out(database: Database, message: SmsMessage) -> None:
    """Record a STOP that only the carrier has seen, as if it had been sent to us; the carrier has confirmed it."""
    async with database.write(message.organization_id) as session:
        conversation = await lock_row(session, SmsConversation, message.conversation_id)
        await obey_keyword(session, conversation, "stop", answered=True)


# Carrier callbacks about outbound messages. They may arrive late, twice, in any order, or before the carrier has
# reported its message id.


async def apply_message_event(
    database: Database,
    organization_id: UUID,
    carrier: str,
    status_report: TextMessageStatus,
    *,
    message_id: UUID | None,
) -> None:
    """Apply one event. `message_id` is the id in the callback's address, if it has one."""
    async with database.write(organization_id) as session:
        message = await queries.lock_outbound_message(
            session, message_id, carrier=carrier, carrier_text_id=status_report.carrier_text_id
        )
        if message is None:
            logger.warning("callback for an unknown message", carrier=carrier)
            return
        await advance_message(session, message, status_report.status, error=status_report.error_message)
        await correct_message_cost(session, message, segments=status_report.segments, cost=status_report.cost)
        message.carrier_text_id = message.carrier_text_id or status_report.carrier_text_id
    if status_report.opted_out:
        await record_carrier_opt_out(database, message)


# Carriers are asked for the status of text messages that they have accepted, and about which no report has come.


async def ask_for_status(database: Database, providers: Providers, organization_id: UUID, message_id: UUID) -> None:
    """Ask the carrier for the status of a sent message whose time has come, and apply it as its report."""
    async with database.write(organization_id) as session:
        message = await queries.lock_due_message(session, message_id)
        if message is None:
            return
        message.watch_at = find_next_look(message)
    if message.carrier_text_id is None:
        return
    try:
        async with (
            asyncio.timeout(CARRIER_SECONDS),
            providers.use(organization_id, TelephonyProvider, message.carrier) as carrier,
        ):
            with span_request("find_text_status", carrier.name):
                report = await carrier.find_text_status(message.carrier_text_id)
    except (ProviderError, TimeoutError) as error:
        logger.warning("the carrier did not tell a message's status", message_id=str(message.id), reason=str(error))
        return
    if report is not None:
        await apply_message_event(database, organization_id, message.carrier, report, message_id=message_id)
