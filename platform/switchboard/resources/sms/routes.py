"""Endpoints of text messages."""

from uuid import UUID

from switchboard.foundation.database import TenantSession
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.blueprint import ApiBlueprint
from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.errors import (
    DestinationNotAllowed,
    InsufficientBalance,
    InvalidState,
    OutboundPaused,
    RecipientOptedOut,
)
from switchboard.foundation.web.paging import paginate, paginate_table
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.media import check_media_urls
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.schemas import SmsConversationOut, SmsCreate, SmsMessageOut, SmsMessageQuery

blueprint = ApiBlueprint("sms", __name__, tags={"sms": "Text messages and conversations."})


@blueprint.post("/v1/sms")
@endpoint(
    scope="sms:write",
    body=SmsCreate,
    answer=SmsMessageOut,
    status=201,
    errors=[DestinationNotAllowed, InsufficientBalance, InvalidState, OutboundPaused, RecipientOptedOut],
)
async def send_sms(session: TenantSession, data: SmsCreate, outbound: OutboundClient) -> SmsMessageOut:
    """Send a text message.

    The response comes at once, with the message `queued`; events and the conversation report its progress.
    """
    return SmsMessageOut.of(await sms.send_message(session, check_media_urls(outbound, data)))


@blueprint.get("/v1/sms/conversations")
@endpoint(scope="sms:read", query=PageQuery, answer=Page[SmsConversationOut])
async def list_sms_conversations(session: TenantSession, query: PageQuery) -> Page[SmsConversationOut]:
    """List text message conversations."""
    return await paginate_table(session, SmsConversation, SmsConversationOut, query)


@blueprint.get("/v1/sms/conversations/<conversation_id>/messages")
@endpoint(scope="sms:read", query=SmsMessageQuery, answer=Page[SmsMessageOut])
async def list_sms_messages(
    session: TenantSession, conversation_id: UUID, query: SmsMessageQuery
) -> Page[SmsMessageOut]:
    """List the messages of a conversation."""
    await sms.get_conversation(session, conversation_id)
    return await paginate(session, sms.list_messages(session, conversation_id), SmsMessageOut.of, query)
