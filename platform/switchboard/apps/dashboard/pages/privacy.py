"""Privacy requests, for owners: copies of a person's data, and its deletion."""

from uuid import UUID

from quart import Response, redirect

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.formats import phone
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.privacy import service as privacy
from switchboard.resources.privacy.export_files import ExportFiles
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.resources.privacy.schemas import PrivacyRequestCreate


@page("/dashboard/privacy", role="owner")
async def privacy_page(session: ReadSession, query: PageQuery, form: Form, keyring: KeyRing) -> str:
    """List the requests, newest first."""
    found = await load_list(session, session.select(PrivacyRequest), query)
    shown = [privacy.describe_privacy_request(keyring, request) for request in found.items]
    with_file = {request.id for request in found.items if privacy.has_file(request)}
    return await render("dashboard/privacy/list.html", requests=found, shown=shown, with_file=with_file, form=form)


@action("/dashboard/privacy", role="owner", invalid=privacy_page)
async def create_privacy_request(session: WriteSession, data: PrivacyRequestCreate, keyring: KeyRing) -> Next:
    """Request an export or an erasure."""
    await privacy.create_privacy_request(session, data, keyring=keyring)
    export, erasure = _("The export of %(number)s was requested."), _("The erasure of %(number)s was requested.")
    notice = (export if data.kind == "export" else erasure) % {"number": phone(data.phone_number)}
    return go_to("privacy_page", notice)


@page("/dashboard/privacy/<request_id>/file", role="owner")
async def export_file(session: WriteSession, request_id: UUID, files: ExportFiles) -> Response:
    """Redirect to the file of an export."""
    link = files.build_link(await privacy.read_export_file(session, request_id))
    response: Response = redirect(link.url)  # type: ignore[assignment] # Quart's own type is wider
    return response
