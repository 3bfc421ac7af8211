"""The integration, for owners: a partner's API key, and a URL that receives every event. Secrets are never shown."""

from typing import Literal

from pydantic import JsonValue

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.schemas import RequestBody
from switchboard.resources.integrations import service as integrations
from switchboard.resources.integrations.schemas import IntegrationUpdate

SECRETS = ("partner_api_key", "webhook_secret")


class Forgotten(RequestBody):
    """The secret to delete."""

    secret: Literal["partner_api_key", "webhook_secret"]


@page("/dashboard/webhooks/integration", role="owner")
async def integration_page(session: ReadSession, form: Form) -> str:
    """Show the integration."""
    kept = await integrations.find_integration(session)
    values: dict[str, JsonValue] = {"webhook_url": kept.webhook_url if kept else None}
    return await render("dashboard/webhooks/integration.html", form=form.starting_with(values), kept=kept)


@action("/dashboard/webhooks/integration", role="owner", form=IntegrationUpdate, invalid=integration_page)
async def save_integration(
    session: WriteSession, data: IntegrationUpdate, keyring: KeyRing, outbound: OutboundClient
) -> Next:
    """Update the integration. A secret that was left empty does not change."""
    data.model_fields_set.difference_update([name for name in SECRETS if getattr(data, name) is None])
    await integrations.update_integration(session, data, keyring=keyring, outbound=outbound)
    return go_to("integration_page", _("Saved."))


@action("/dashboard/webhooks/integration/forget", role="owner", form=Forgotten)
async def forget_integration_secret(
    session: WriteSession, data: Forgotten, keyring: KeyRing, outbound: OutboundClient
) -> Next:
    """Delete one of the secrets."""
    forgotten = IntegrationUpdate.model_validate({data.secret: None})
    await integrations.update_integration(session, forgotten, keyring=keyring, outbound=outbound)
    return go_to("integration_page", _("Secret deleted."), "warning")
