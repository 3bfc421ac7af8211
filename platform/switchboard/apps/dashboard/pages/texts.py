"""Text messages: inbox, conversation, reply, and new message."""

from typing import Literal
from uuid import UUID

from pydantic import Field
from quart import Response

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.formats import number_name
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import Page, PageQuery, Query, RequestBody, WrittenNumber
from switchboard.resources.contacts.queries import find_contact_by_number, get_contact_name, get_contact_names
from switchboard.resources.identity.queries import list_members
from switchboard.resources.phone_numbers import service as numbers
from switchboard.resources.phone_numbers.queries import list_active_numbers
from switchboard.resources.sms import inbox
from switchboard.resources.sms import service as sms
from switchboard.resources.sms.inbox import InboxView
from switchboard.resources.sms.media import MediaResponder
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.queries import count_unread_messages, get_last_messages, mark_read, select_messages
from switchboard.resources.sms.schemas import (
    MAX_BODY_CHARACTERS,
    Reply,
    SmsConversationUpdate,
    SmsCreate,
    SmsMessageQuery,
)


class ConversationAct(RequestBody):
    """A change of a conversation's member or of its resolution. Without a `member` the agent answers."""

    act: Literal["assign", "resolve", "reopen"]
    member: UUID | None = None


class InboxQuery(PageQuery):
    """Filters of the inbox: a phone number, and which conversations."""

    number: WrittenNumber | None = None
    show: InboxView = "open"


class NewTextQuery(Query):
    """Initial values of the form of a new message."""

    to_number: str = Field("", max_length=20)


@page("/dashboard/texts")
async def texts_page(session: ReadSession, viewer: Viewer, query: InboxQuery) -> str:
    """Show the inbox: conversations, latest message first."""
    return await render("dashboard/texts/inbox.html", **await _inbox(session, viewer, query))


@live_part("/dashboard/texts/live")
async def texts_live(session: ReadSession, viewer: Viewer, query: InboxQuery) -> str:
    return await render_part("dashboard/texts/conversations.html", **await _inbox(session, viewer, query))


@page("/dashboard/texts/new", role="agent")
async def new_text_page(session: ReadSession, query: NewTextQuery, form: Form) -> str:
    own = [(number.id, number_name(number)) for number in await list_active_numbers(session) if number.sms_active]
    return await render(
        "dashboard/texts/new.html", form=form.starting_with(query.model_dump()), numbers=own, most=MAX_BODY_CHARACTERS
    )


@action("/dashboard/texts/new", role="agent", invalid=new_text_page)
async def send_text(session: WriteSession, data: SmsCreate) -> Next:
    message = await sms.send_message(session, data, author="person")
    return go_to("conversation_page", conversation_id=message.conversation_id)


@page("/dashboard/texts/media/<media_id>")
async def text_media(viewer: Viewer, media_id: UUID, responder: MediaResponder) -> Response:
    """Serve a file of a received message, as the API does."""
    return await responder.respond(viewer.organization_id, media_id, actor=viewer.principal.actor)


@page("/dashboard/texts/<conversation_id>")
async def conversation_page(
    session: WriteSession, viewer: Viewer, conversation_id: UUID, *, query: SmsMessageQuery, form: Form
) -> str:
    """Show a conversation, which the viewer has read then."""
    conversation = await get_row(session, SmsConversation, conversation_id)
    await mark_read(session, viewer.user.id, conversation)
    number = await numbers.find_active_number(session, conversation.phone_number_id)
    return await render(
        "dashboard/texts/conversation.html",
        form=form,
        number=number,
        members=await list_members(session),
        has_opted_out=await sms.has_opted_out(session, conversation),
        can_be_called=sms.can_be_called(conversation),
        contact=await find_contact_by_number(session, conversation.contact_number),
        most=MAX_BODY_CHARACTERS,
        **await _messages(session, conversation, query),
    )


@live_part("/dashboard/texts/<conversation_id>/live")
async def conversation_live(session: WriteSession, viewer: Viewer, conversation_id: UUID) -> str:
    """Render a conversation's latest messages, which the viewer has read then."""
    conversation = await get_row(session, SmsConversation, conversation_id)
    if await count_unread_messages(session, viewer.user.id, [conversation_id]):
        await mark_read(session, viewer.user.id, conversation)
    return await render_part(
        "dashboard/texts/messages.html", **await _messages(session, conversation, SmsMessageQuery())
    )


@action("/dashboard/texts/<conversation_id>", role="agent", invalid=conversation_page)
async def reply_to_text(session: WriteSession, conversation_id: UUID, data: Reply) -> Next:
    await inbox.reply_to_conversation(session, conversation_id, data.body)
    return go_to("conversation_page", conversation_id=conversation_id)


@action("/dashboard/texts/<conversation_id>/assignment", role="agent")
async def assign_conversation(session: WriteSession, conversation_id: UUID, data: ConversationAct) -> Next:
    """Give a conversation to a member or to the agent, resolve it, or open it again."""
    if data.act == "assign":
        change = SmsConversationUpdate(assigned_to=data.member)
    else:
        change = SmsConversationUpdate(resolved=data.act == "resolve")
    await inbox.update_conversation(session, conversation_id, change)
    if data.act == "resolve":
        return go_to("texts_page", _("Conversation resolved."))
    return go_to("conversation_page", conversation_id=conversation_id)


async def _inbox(session: ReadSession, viewer: Viewer, query: InboxQuery) -> dict[str, object]:
    found, total = await inbox.list_inbox(
        session, query, contact_number=query.number, view=query.show, user_id=viewer.user.id
    )
    return {
        "query": query,
        "conversations": Page[SmsConversation].model_construct(
            items=found, total=total, limit=query.limit, offset=query.offset
        ),
        "unread": await count_unread_messages(session, viewer.user.id, [row.id for row in found]) or {},
        "emails": {member.user_id: member.email for member in await list_members(session)},
        "last": await get_last_messages(session, found),
        "names": await get_contact_names(session, [conversation.contact_number for conversation in found]),
        "numbers": {number.id: number for number in await list_active_numbers(session)},
    }


async def _messages(session: ReadSession, conversation: SmsConversation, query: SmsMessageQuery) -> dict[str, object]:
    return {
        "conversation": conversation,
        "messages": await load_list(session, select_messages(session, conversation.id), query),
        "name": await get_contact_name(session, conversation.contact_number),
        "agent_answers": conversation.reply_due_at is not None,
    }
