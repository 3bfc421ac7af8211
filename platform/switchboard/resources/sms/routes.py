"""Endpoints of text messages."""

from uuid import UUID

from quart import Response

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import (
    DestinationNotAllowed,
    InsufficientBalance,
    InvalidState,
    OutboundPaused,
    RecipientOptedOut,
    Unavailable,
)
from switchboard.foundation.web.paging import get_row, paginate, paginate_table
from switchboard.foundation.web.pipeline import inject
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.sms import inbox
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.media import PATH, MediaResponder, check_media_urls
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.queries import count_unread_messages, mark_read, select_conversations, select_messages
from switchboard.resources.sms.schemas import (
    MediaLinkOut,
    SmsConversationOut,
    SmsConversationQuery,
    SmsConversationRow,
    SmsConversationUpdate,
    SmsCreate,
    SmsMessageOut,
    SmsMessageQuery,
)

blueprint = ApiBlueprint("sms", __name__, tags={"sms": "Text messages and conversations."})


@blueprint.post("/v1/sms")
@endpoint(
    scope="sms:write",
    status=201,
    errors=[DestinationNotAllowed, InsufficientBalance, InvalidState, OutboundPaused, RecipientOptedOut],
)
async def send_sms(session: WriteSession, data: SmsCreate, outbound: OutboundClient) -> SmsMessageOut:
    """Send a text message.

    The response comes at once, with the message `queued`; events and the conversation report its progress.
    """
    return SmsMessageOut.model_validate(await sms.send_message(session, check_media_urls(outbound, data)))


@blueprint.get("/v1/sms/conversations")
@endpoint(scope="sms:read")
async def list_sms_conversations(
    session: ReadSession, principal: Principal, query: SmsConversationQuery
) -> Page[SmsConversationOut]:
    """List text message conversations."""
    if query.model_fields_set - PageQuery.model_fields.keys():
        listing = await paginate(
            session, select_conversations(session, query), SmsConversationRow.model_validate, query
        )
    else:
        listing = await paginate_table(session, SmsConversation, SmsConversationRow, query)
    unread = await count_unread_messages(session, principal.user_id, [row.id for row in listing.items])
    items = [
        SmsConversationOut.from_row(row, None if unread is None else unread.get(row.id, 0)) for row in listing.items
    ]
    return Page[SmsConversationOut].model_construct(
        items=items, total=listing.total, limit=listing.limit, offset=listing.offset
    )


@blueprint.get("/v1/sms/conversations/<conversation_id>")
@endpoint(scope="sms:read")
async def get_sms_conversation(session: ReadSession, principal: Principal, conversation_id: UUID) -> SmsConversationOut:
    """View a conversation."""
    return await _show(session, principal, await get_row(session, SmsConversation, conversation_id))


@blueprint.patch("/v1/sms/conversations/<conversation_id>")
@endpoint(scope="sms:write")
async def update_sms_conversation(
    session: WriteSession, principal: Principal, conversation_id: UUID, data: SmsConversationUpdate
) -> SmsConversationOut:
    """Assign or resolve a conversation.

    While a member has the conversation, the agent does not answer. A message of the contact opens it again.
    """
    return await _show(session, principal, await inbox.update_conversation(session, conversation_id, data))


@blueprint.post("/v1/sms/conversations/<conversation_id>/read")
@endpoint(scope="sms:read", status=204, errors=[InvalidState])
async def read_sms_conversation(session: WriteSession, principal: Principal, conversation_id: UUID) -> None:
    """Mark a conversation as read by the user of the access token.

    An API key acts for no user, and gets 409.
    """
    if principal.user_id is None:
        raise InvalidState("An API key acts for no user. Use an access token of an application.")
    await mark_read(session, principal.user_id, await get_row(session, SmsConversation, conversation_id))


async def _show(session: ReadSession, principal: Principal, conversation: SmsConversation) -> SmsConversationOut:
    unread = await count_unread_messages(session, principal.user_id, [conversation.id])
    return SmsConversationOut.from_row(conversation, None if unread is None else unread.get(conversation.id, 0))


@blueprint.get("/v1/sms/conversations/<conversation_id>/messages")
@endpoint(scope="sms:read")
async def list_sms_messages(session: ReadSession, conversation_id: UUID, query: SmsMessageQuery) -> Page[SmsMessageOut]:
    """List the messages of a conversation."""
    await get_row(session, SmsConversation, conversation_id)
    return await paginate(session, select_messages(session, conversation_id), SmsMessageOut.model_validate, query)


@blueprint.get("/v1/sms/media/<media_id>")
@endpoint(scope="sms:read", media_types=("application/octet-stream",), errors=[Unavailable])
async def get_sms_media(principal: Principal, media_id: UUID, responder: MediaResponder) -> Response:
    """Get a file of a received message.

    The content type is the file's own. While the file is being fetched from the carrier, which takes seconds, the
    response is 503.
    """
    return await responder.respond(principal.organization_id, media_id, actor=principal.actor)


@blueprint.get("/v1/sms/media/<media_id>/url")
@endpoint(scope="sms:read", errors=[Unavailable])
async def get_sms_media_url(principal: Principal, media_id: UUID, responder: MediaResponder) -> MediaLinkOut:
    """Get a link to a file of a received message.

    The link needs no credential and is valid for 15 minutes.
    """
    return await responder.build_link(principal.organization_id, media_id, actor=principal.actor)


@blueprint.get(f"{PATH}<token>")
@inject
async def follow_sms_media_link(token: str, responder: MediaResponder) -> Response:
    """Stream the file of a link."""
    return await responder.follow_link(token)
