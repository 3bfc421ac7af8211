"""The do-not-call list."""

from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.formats import phone
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import WrittenNumber
from switchboard.resources.contacts.queries import get_contact_names
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.do_not_call.queries import select_entries
from switchboard.resources.do_not_call.schemas import DoNotCallCreate, DoNotCallQuery


class ListQuery(DoNotCallQuery):
    """Filters: a phone number in any common notation."""

    phone_number: WrittenNumber | None = None


HEARD = {"api": LazyText("dashboard or API"), "text": LazyText("text message"), "call": LazyText("call")}
"""Labels of an entry's source."""


@page("/dashboard/contacts/do-not-call", query=ListQuery)
async def do_not_call_page(session: ReadSession, query: ListQuery, form: Form) -> str:
    """List the numbers, newest first."""
    found = await load_list(session, select_entries(session, phone_number=query.phone_number), query)
    names = await get_contact_names(session, {entry.phone_number for entry in found.items})
    return await render(
        "dashboard/contacts/do_not_call.html", entries=found, query=query, names=names, heard=HEARD, form=form
    )


@action("/dashboard/contacts/do-not-call", role="agent", form=DoNotCallCreate, invalid=do_not_call_page)
async def forbid_calling(session: WriteSession, data: DoNotCallCreate) -> Next:
    """Add a number to the do-not-call list."""
    entry = await do_not_call.add_entry(session, data.phone_number, source="api", note=data.note)
    return go_to(
        "do_not_call_page",
        _("%(phone_number)s was added to the do-not-call list.", phone_number=phone(entry.phone_number)),
    )


@action("/dashboard/contacts/do-not-call/<entry_id>/remove")
async def allow_calling(session: WriteSession, entry_id: UUID) -> Next:
    """Remove a number from the do-not-call list."""
    await do_not_call.delete_entry(session, entry_id)
    return go_to("do_not_call_page", _("The number was removed from the do-not-call list."), "warning")
