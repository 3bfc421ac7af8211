"""Contacts: list, search, and edit."""

from typing import Annotated, Literal
from urllib.parse import urlencode
from uuid import UUID

from pydantic import Field
from quart import url_for

from switchboard.apps.dashboard.blueprint import dashboard
from switchboard.apps.dashboard.decorators import Next, action, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import TenantSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import ngettext
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.schemas import Page, RequestBody
from switchboard.resources.contacts import service as contacts
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.schemas import MAX_LABEL, ContactCreate, ContactQuery, ContactUpdate
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.models import NoticeTone


@dashboard.get("/dashboard/contacts")
@page(query=ContactQuery)
async def contacts_page(session: TenantSession, query: ContactQuery) -> str:
    """List or search the contacts."""
    if query.search:
        part, total = await contacts.search_contacts(session, query)
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
    return Next(url_for("dashboard.contacts_page"), describe_contact_change(data.act, len(selected)), tone)


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
    return Next(
        url_for("dashboard.contacts_page"), _("%(name)s was created.", name=contact.name or contact.phone_number)
    )


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
    return Next(url_for("dashboard.contact_page", contact_id=contact_id), _("Saved."))


@dashboard.post("/dashboard/contacts/<contact_id>/delete")
@action()
async def delete_contact(session: TenantSession, contact_id: UUID) -> Next:
    """Delete a contact permanently. Its calls and text messages are kept."""
    await contacts.delete_contact(session, contact_id)
    return Next(url_for("dashboard.contacts_page"), _("Contact deleted."), "warning")
