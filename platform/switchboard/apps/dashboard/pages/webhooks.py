"""Webhooks: endpoints, deliveries, test events, and the integration."""

import json
from datetime import timedelta
from typing import Literal
from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.events.models import Delivery, EventTarget
from switchboard.foundation.events.outbox import read_payload
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.languages import ngettext
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery, RequestBody
from switchboard.plugin_sdk import JsonObject
from switchboard.resources.identity.models import NoticeTone
from switchboard.resources.integrations import service as integrations
from switchboard.resources.integrations.schemas import IntegrationUpdate
from switchboard.resources.webhooks import deliveries
from switchboard.resources.webhooks import service as endpoints
from switchboard.resources.webhooks.queries import list_attempts, list_endpoints, select_deliveries
from switchboard.resources.webhooks.schemas import AllDeliveriesQuery, EndpointCreate, EndpointUpdate

RECENT = 10


class DeliveriesQuery(AllDeliveriesQuery):
    endpoint_id: UUID | None = None


class RecentFailures(RequestBody):
    """The hours before now whose failed deliveries are replayed."""

    hours: Literal["1", "24", "168"]


class Rotation(RequestBody):
    """The rotation of a secret: with `grace`, the current secret stays valid for a while."""

    grace: bool = False


def list_event_labels() -> list[tuple[str, str]]:
    """Return the types of events with their labels."""
    return [(name, f"{name}: {_(str(kind.__doc__).rstrip('.'))}") for name, kind in CATALOG.items()]


@page("/dashboard/webhooks", role="builder")
async def webhooks_page(session: ReadSession) -> str:
    return await render(
        "dashboard/webhooks/list.html",
        endpoints=await list_endpoints(session),
        most=endpoints.MOST_ENDPOINTS,
    )


@page("/dashboard/webhooks/new", role="owner")
async def new_webhook_page(form: Form) -> str:
    return await render("dashboard/webhooks/new.html", form=form, events=list_event_labels())


@action("/dashboard/webhooks/new", role="owner", invalid=new_webhook_page)
async def add_webhook(session: WriteSession, data: EndpointCreate, keyring: KeyRing, outbound: OutboundClient) -> str:
    """Create an endpoint and show its secret once."""
    endpoint, secret = await endpoints.create_endpoint(session, data, keyring=keyring, outbound=outbound)
    return await render("dashboard/webhooks/secret.html", endpoint=endpoint, secret_text=secret, is_new=True)


@page("/dashboard/webhooks/<endpoint_id>", role="builder")
async def webhook_page(session: ReadSession, endpoint_id: UUID, form: Form, viewer: Viewer) -> str:
    """Show an endpoint with its settings and latest deliveries."""
    endpoint = await endpoints.get_endpoint(session, endpoint_id)
    kept: JsonObject = {
        "url": endpoint.url,
        "description": endpoint.description,
        "events": [*endpoint.events],
    }
    latest = await load_list(session, select_deliveries(session, target_id=endpoint_id), PageQuery(limit=RECENT))
    return await render(
        "dashboard/webhooks/endpoint.html",
        form=form.starting_with(kept),
        endpoint=endpoint,
        events=list_event_labels(),
        latest=latest,
        urls={endpoint.id: endpoint.url},
        may_change=viewer.has_role("owner"),
    )


@action("/dashboard/webhooks/<endpoint_id>", role="owner", invalid=webhook_page)
async def save_webhook(
    session: WriteSession, endpoint_id: UUID, data: EndpointUpdate, outbound: OutboundClient
) -> Next:
    await endpoints.update_endpoint(session, endpoint_id, data, outbound=outbound)
    return go_to("webhook_page", _("Saved."), endpoint_id=endpoint_id)


@action("/dashboard/webhooks/<endpoint_id>/enabled", role="owner")
async def switch_webhook(
    session: WriteSession, endpoint_id: UUID, data: EndpointUpdate, outbound: OutboundClient
) -> Next:
    endpoint = await endpoints.update_endpoint(session, endpoint_id, data, outbound=outbound)
    notice = (
        _("Endpoint enabled. Pending deliveries continue.")
        if endpoint.enabled
        else _("Endpoint disabled. Pending deliveries wait for seven days.")
    )
    tone: NoticeTone = "done" if endpoint.enabled else "warning"
    return go_to("webhook_page", notice, tone, endpoint_id=endpoint_id)


@action("/dashboard/webhooks/<endpoint_id>/rotate", role="owner")
async def rotate_webhook_secret(session: WriteSession, endpoint_id: UUID, data: Rotation, keyring: KeyRing) -> str:
    """Rotate the secret and show the new one once."""
    endpoint, secret = await endpoints.rotate_endpoint_secret(session, endpoint_id, grace=data.grace, keyring=keyring)
    return await render("dashboard/webhooks/secret.html", endpoint=endpoint, secret_text=secret, is_new=False)


@action("/dashboard/webhooks/<endpoint_id>/delete", role="owner")
async def delete_webhook(session: WriteSession, endpoint_id: UUID) -> Next:
    """Delete an endpoint. Its pending deliveries fail."""
    await endpoints.delete_endpoint(session, endpoint_id)
    return go_to("webhooks_page", _("Endpoint deleted."), "warning")


@action("/dashboard/webhooks/<endpoint_id>/test")
async def test_webhook(session: WriteSession, endpoint_id: UUID) -> Next:
    """Send a sample `call.completed` event to this endpoint."""
    delivery = await deliveries.send_test_event(session, endpoint_id)
    return go_to("delivery_page", _("Test event sent."), delivery_id=delivery.id)


@action("/dashboard/webhooks/<endpoint_id>/replay-failed")
async def replay_failed_deliveries(session: WriteSession, endpoint_id: UUID, data: RecentFailures) -> Next:
    """Replay the failed deliveries of the last hours."""
    since = now() - timedelta(hours=int(data.hours))
    result = await deliveries.replay_failed_deliveries(session, endpoint_id, since=since, until=None)
    notice = (
        ngettext(
            "%(number)s failed delivery replayed.",
            "%(number)s failed deliveries replayed.",
            result.replayed,
            number=result.replayed,
        )
        if result.replayed
        else _("No failed deliveries to replay.")
    )
    more = " " + _("More are left: replay them next.") if result.has_more else ""
    return go_to("webhook_page", notice + more, endpoint_id=endpoint_id)


@page("/dashboard/webhooks/deliveries", role="builder")
async def deliveries_page(session: ReadSession, query: DeliveriesQuery) -> str:
    found = await load_list(session, select_deliveries(session, query, target_id=query.endpoint_id), query)
    known = await list_endpoints(session)
    return await render(
        "dashboard/webhooks/deliveries.html", deliveries=found, query=query, endpoints=known, urls=_urls(known)
    )


def _urls(known: list[EventTarget]) -> dict[UUID, str | None]:
    return {endpoint.id: endpoint.url for endpoint in known}


@page("/dashboard/webhooks/deliveries/<delivery_id>", role="builder")
async def delivery_page(session: ReadSession, delivery_id: UUID) -> str:
    """Show a delivery with its attempts and body."""
    return await render("dashboard/webhooks/delivery.html", **await _delivery(session, delivery_id))


@live_part("/dashboard/webhooks/deliveries/<delivery_id>/live", role="builder")
async def delivery_live(session: ReadSession, delivery_id: UUID) -> str:
    return await render_part("dashboard/webhooks/attempts.html", **await _delivery(session, delivery_id))


async def _delivery(session: ReadSession, delivery_id: UUID) -> dict[str, object]:
    delivery = await get_row(session, Delivery, delivery_id)
    return {
        "delivery": delivery,
        "attempts": await list_attempts(session, delivery_id),
        "urls": _urls(await list_endpoints(session)),
        "is_test": deliveries.is_test(delivery),
        "payload": json.dumps(read_payload(delivery), indent=2, ensure_ascii=False),
    }


@action("/dashboard/webhooks/deliveries/<delivery_id>/replay")
async def replay_delivery(session: WriteSession, delivery_id: UUID) -> Next:
    """Replay a delivery: send the same body with a new id."""
    again = await deliveries.replay_delivery(session, delivery_id)
    return go_to("delivery_page", _("Delivery replayed with a new ID."), delivery_id=again.id)


# The integration, for owners: a partner's API key, and a URL that receives every event. Secrets are never shown.


SECRETS = ("partner_api_key", "webhook_secret")


class Forgotten(RequestBody):
    """The secret to delete."""

    secret: Literal["partner_api_key", "webhook_secret"]


@page("/dashboard/webhooks/integration", role="owner")
async def integration_page(session: ReadSession, form: Form) -> str:
    kept = await integrations.find_integration(session)
    values: JsonObject = {"webhook_url": kept.webhook_url if kept else None}
    return await render("dashboard/webhooks/integration.html", form=form.starting_with(values), kept=kept)


@action("/dashboard/webhooks/integration", role="owner", invalid=integration_page)
async def save_integration(
    session: WriteSession, data: IntegrationUpdate, keyring: KeyRing, outbound: OutboundClient
) -> Next:
    """Update the integration. A secret that was left empty does not change."""
    data.model_fields_set.difference_update([name for name in SECRETS if getattr(data, name) is None])
    await integrations.update_integration(session, data, keyring=keyring, outbound=outbound)
    return go_to("integration_page", _("Saved."))


@action("/dashboard/webhooks/integration/forget", role="owner")
async def forget_integration_secret(
    session: WriteSession, data: Forgotten, keyring: KeyRing, outbound: OutboundClient
) -> Next:
    """Delete one of the secrets."""
    forgotten = IntegrationUpdate.model_validate({data.secret: None})
    await integrations.update_integration(session, forgotten, keyring=keyring, outbound=outbound)
    return go_to("integration_page", _("Secret deleted."), "warning")
