"""OAuth clients: the applications that can request access. Superadmins register them for the whole installation."""

from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.apps.dashboard.viewer import Viewer, record_in_current_organization
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.database import Database
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.foundation.web.schemas import Name, RequestBody
from switchboard.resources.oauth import clients

Lines = Annotated[list[str], BeforeValidator(lambda text: str(text).split())]


class ClientForm(RequestBody):
    """An application's name and redirect URIs, one per line."""

    name: Name
    redirect_uris: Lines


class NewClient(ClientForm):
    """A new application. A public one has no secret."""

    public: bool = False


@page("/dashboard/oauth-clients", role="superadmin")
async def oauth_clients_page(database: Database) -> str:
    return await render("dashboard/oauth_clients/list.html", clients=await clients.list_clients(database))


@page("/dashboard/oauth-clients/new", role="superadmin")
async def new_oauth_client_page(form: Form) -> str:
    return await render("dashboard/oauth_clients/edit.html", form=form, client=None)


@action("/dashboard/oauth-clients/new", role="superadmin", invalid=new_oauth_client_page)
async def register_oauth_client(viewer: Viewer, data: NewClient, database: Database) -> str:
    """Register an application and show its secret once."""
    client, secret = await clients.register_client(
        database, name=data.name, redirect_uris=data.redirect_uris, public=data.public
    )
    await record_in_current_organization(
        database, viewer, AuditAction.OAUTH_CLIENT_CREATED, client.id, data.model_fields_set
    )
    return await render("dashboard/oauth_clients/made.html", client=client, secret_text=secret)


@page("/dashboard/oauth-clients/<client_id>", role="superadmin")
async def oauth_client_page(client_id: UUID, form: Form, database: Database) -> str:
    client = await clients.get_client(database, client_id)
    kept = {"name": client.name, "redirect_uris": "\n".join(client.redirect_uris)}
    return await render("dashboard/oauth_clients/edit.html", form=form.starting_with(kept), client=client)


@action("/dashboard/oauth-clients/<client_id>", role="superadmin", invalid=oauth_client_page)
async def save_oauth_client(viewer: Viewer, client_id: UUID, data: ClientForm, database: Database) -> Next:
    """Update an application's name and redirect URIs."""
    await clients.update_client(database, client_id, name=data.name, redirect_uris=data.redirect_uris)
    await record_in_current_organization(
        database, viewer, AuditAction.OAUTH_CLIENT_UPDATED, client_id, data.model_fields_set
    )
    return go_to("oauth_client_page", _("Saved."), client_id=client_id)


@action("/dashboard/oauth-clients/<client_id>/rotate-secret", role="superadmin")
async def rotate_oauth_client_secret(viewer: Viewer, client_id: UUID, database: Database) -> str:
    """Create a new secret and show it once. The old secret stops working."""
    client, secret = await clients.rotate_client_secret(database, client_id)
    await record_in_current_organization(database, viewer, AuditAction.OAUTH_CLIENT_SECRET_ROTATED, client_id)
    return await render("dashboard/oauth_clients/made.html", client=client, secret_text=secret)


@action("/dashboard/oauth-clients/<client_id>/delete", role="superadmin")
async def delete_oauth_client(viewer: Viewer, client_id: UUID, database: Database, limiter: RateLimiter) -> Next:
    """Delete an application and everything that users granted it."""
    await clients.delete_client(database, limiter, client_id)
    await record_in_current_organization(database, viewer, AuditAction.OAUTH_CLIENT_DELETED, client_id)
    return go_to("oauth_clients_page", _("Application deleted. Its tokens no longer work."), "warning")
