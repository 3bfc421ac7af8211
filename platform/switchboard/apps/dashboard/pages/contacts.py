"""Contacts: list, search, and edit."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic import AwareDatetime, Field
from sqlalchemy import ColumnElement
from sqlmodel import col

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.labels import ENDED
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import TenantSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.schemas import Page, Query, RequestBody
from switchboard.resources.agents import service as agents
from switchboard.resources.calls.models import Call
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactCreate, ContactQuery, ContactUpdate
from switchboard.resources.contacts.search import search_contacts
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.models import NoticeTone
from switchboard.resources.sms.models import SmsConversation, SmsMessage


@dashboard.get("/dashboard/contacts")
@page(query=ContactQuery)
async def contacts_page(session: TenantSession, query: ContactQuery) -> str:
    """List or search the contacts."""
    if query.search:
        part, total = await search_contacts(session, query)
        listing = Page[Contact].model_construct(items=part, total=total, limit=query.limit, offset=query.offset)
    else:
        listing = await load_list(session, contacts.list_contacts(session, phone_number=query.phone), query)
    filters = urlencode(query.model_dump(exclude_defaults=True, exclude={"limit", "offset"}))
    return await render("dashboard/contacts/list.html", contacts=listing, query=query, filters=filters)


class SelectedContacts(RequestBody):
    """An action on selected contacts. `tag` is the tag to add."""

    ids: list[UUID] = Field(min_length=1, max_length=100)
    act: Literal["tag", "do_not_call", "delete"]
    tag: Annotated[str, Field(max_length=MAX_LABEL, pattern="^[^,]*$")] = ""


@dashboard.post("/dashboard/contacts/selected")
@action(form=SelectedContacts)
async def change_selected_contacts(session: TenantSession, data: SelectedContacts) -> Next:
    """Tag, delete, or stop calling the selected contacts; all of them or, after an error, none."""
    selected = await contacts.list_contacts_by_id(session, data.ids)
    for contact in selected:
        if data.act == "delete":
            await contacts.delete_contact(session, contact.id)
        elif data.act == "do_not_call":
            if not await do_not_call.is_listed(session, contact.phone_number):
                await do_not_call.add_entry(session, contact.phone_number, source="api")
        elif data.tag:
            await contacts.add_tag(session, contact, data.tag)
        else:
            raise ValidationFailed.field("tag", _("is required"))
    tone: NoticeTone = "warning" if data.act == "delete" else "done"
    return go_to("contacts_page", describe_contact_change(data.act, len(selected)), tone)


def describe_contact_change(act: Literal["tag", "do_not_call", "delete"], number: int) -> str:
    """Return the notice of a change of several contacts."""
    match act:
        case "tag":
            text = ngettext("%(number)s contact was tagged.", "%(number)s contacts were tagged.", number)
        case "delete":
            text = ngettext("%(number)s contact was deleted.", "%(number)s contacts were deleted.", number)
        case _:
            text = ngettext(
                "%(number)s contact was put on the do-not-call list.",
                "%(number)s contacts were put on the do-not-call list.",
                number,
            )
    return text % {"number": number}


@dashboard.get("/dashboard/contacts/new")
@page(role="agent")
async def new_contact_page(form: Form) -> str:
    """Show the form of a new contact."""
    return await render("dashboard/contacts/edit.html", form=form, contact=None)


@dashboard.post("/dashboard/contacts/new")
@action(role="agent", form=ContactCreate, invalid=new_contact_page)
async def add_contact(session: TenantSession, data: ContactCreate) -> Next:
    """Create a contact."""
    contact = await contacts.create_contact(session, data)
    return go_to("contacts_page", _("%(name)s was created.", name=contact.name or contact.phone_number))


@dashboard.get("/dashboard/contacts/<contact_id>")
@page()
async def contact_page(session: TenantSession, contact_id: UUID, form: Form) -> str:
    """Show a contact."""
    contact = await contacts.get_contact(session, contact_id)
    return await render(
        "dashboard/contacts/edit.html",
        form=form.starting_with(contact.model_dump(mode="json")),
        contact=contact,
        is_not_called=await do_not_call.is_listed(session, contact.phone_number),
    )


@dashboard.post("/dashboard/contacts/<contact_id>")
@action(role="agent", form=ContactUpdate, invalid=contact_page)
async def save_contact(session: TenantSession, contact_id: UUID, data: ContactUpdate) -> Next:
    """Update a contact."""
    await contacts.update_contact(session, contact_id, data)
    return go_to("contact_page", _("Saved."), contact_id=contact_id)


@dashboard.post("/dashboard/contacts/<contact_id>/delete")
@action()
async def delete_contact(session: TenantSession, contact_id: UUID) -> Next:
    """Delete a contact permanently. Its calls and text messages are kept."""
    await contacts.delete_contact(session, contact_id)
    return go_to("contacts_page", _("Contact deleted."), "warning")


ENTRIES = 50


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """Calls and messages of a contact, newest first. `more_before` is the moment from which the next part goes on, None
    at the end.

    Rows of the same microsecond are in one part.
    """

    entries: list[Call | SmsMessage]
    more_before: datetime | None


async def load_timeline(
    session: TenantSession, phone_number: str, *, before: datetime | None, limit: int
) -> TimelinePart:
    """Return the newest calls and messages of a phone number before a moment.

    Each part reads the newest rows of an index, so a page costs the same however long the timeline is.
    """
    found: list[Call | SmsMessage] = []
    for column in (col(Call.from_number), col(Call.to_number)):
        found += await _load_calls(session, column == phone_number, before, limit)
    conversations = session.select(SmsConversation).where(col(SmsConversation.contact_number) == phone_number)
    for conversation in (await session.exec(conversations)).all():
        found += await _load_messages(session, conversation, before, limit)
    newest = sorted({row.id: row for row in found}.values(), key=lambda row: (row.created_at, row.id), reverse=True)
    if len(newest) <= limit:
        return TimelinePart(newest, None)
    last = newest[limit - 1].created_at
    return TimelinePart([row for row in newest if row.created_at >= last], last)


async def _load_calls(
    session: TenantSession, of_number: ColumnElement[bool], before: datetime | None, limit: int
) -> list[Call]:
    rows = session.select(Call).where(of_number)
    if before is not None:
        rows = rows.where(col(Call.created_at) < before)
    return list((await session.exec(rows.order_by(col(Call.created_at).desc()).limit(limit + 1))).all())


async def _load_messages(
    session: TenantSession, conversation: SmsConversation, before: datetime | None, limit: int
) -> list[SmsMessage]:
    rows = session.select(SmsMessage).where(col(SmsMessage.conversation_id) == conversation.id)
    if before is not None:
        rows = rows.where(col(SmsMessage.created_at) < before)
    newest = rows.order_by(col(SmsMessage.created_at).desc(), col(SmsMessage.id).desc())
    return list((await session.exec(newest.limit(limit + 1))).all())


class TimelineQuery(Query):
    """The moment before which the timeline is shown."""

    before: AwareDatetime | None = None


@dashboard.get("/dashboard/contacts/<contact_id>/timeline")
@page(query=TimelineQuery)
async def timeline_page(session: TenantSession, contact_id: UUID, query: TimelineQuery) -> str:
    """Show the calls and text messages with a contact."""
    contact = await contacts.get_contact(session, contact_id)
    part = await load_timeline(session, contact.phone_number, before=query.before, limit=ENTRIES)
    return await render(
        "dashboard/contacts/timeline.html",
        contact=contact,
        part=part,
        before=query.before,
        next_before=part.more_before.isoformat() if part.more_before else None,
        calls={entry.id for entry in part.entries if isinstance(entry, Call)},
        agents=await agents.get_agent_names(session),
        ended=ENDED,
    )
