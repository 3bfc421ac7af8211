"""Endpoints of webhook endpoints, deliveries, and event types."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.events.models import Delivery
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.schemas import Page
from switchboard.resources.webhooks import deliveries
from switchboard.resources.webhooks import service as webhooks
from switchboard.resources.webhooks.queries import list_attempts, list_endpoints, select_deliveries
from switchboard.resources.webhooks.schemas import (
    AllDeliveriesQuery,
    AttemptOut,
    AttemptsOut,
    DeliveryOut,
    DeliveryQuery,
    EndpointCreate,
    EndpointCreated,
    EndpointOut,
    EndpointUpdate,
    EventOut,
    EventsOut,
    ReplayOut,
    ReplayRequest,
    RotatedSecret,
    RotateQuery,
)

blueprint = ApiBlueprint(
    "webhooks",
    __name__,
    tags={
        "webhook-endpoints": "Endpoints that receive events.",
        "webhook-deliveries": "Deliveries of events, and their attempts.",
        "webhook-events": "The catalog of events.",
    },
)


@blueprint.get("/v1/webhook-endpoints")
@endpoint(scope="webhooks:read")
async def list_webhook_endpoints(session: ReadSession) -> list[EndpointOut]:
    """List webhook endpoints.

    All of them, newest first; there are at most ten.
    """
    return [EndpointOut.from_row(found) for found in await list_endpoints(session)]


@blueprint.post("/v1/webhook-endpoints")
@endpoint(scope="webhooks:write", status=201, errors=[InvalidState])
async def create_webhook_endpoint(
    session: WriteSession, data: EndpointCreate, keyring: KeyRing, outbound: OutboundClient
) -> EndpointCreated:
    """Create a webhook endpoint.

    The response holds its signing secret, which is not shown again. The address must be public; private, loopback, and
    reserved addresses are refused.
    """
    made, secret = await webhooks.create_endpoint(session, data, keyring=keyring, outbound=outbound)
    return EndpointCreated.model_validate({**EndpointOut.from_row(made).model_dump(), "secret": secret})


@blueprint.get("/v1/webhook-endpoints/<endpoint_id>")
@endpoint(scope="webhooks:read")
async def get_webhook_endpoint(session: ReadSession, endpoint_id: UUID) -> EndpointOut:
    """Get a webhook endpoint."""
    return EndpointOut.from_row(await webhooks.get_endpoint(session, endpoint_id))


@blueprint.patch("/v1/webhook-endpoints/<endpoint_id>")
@endpoint(scope="webhooks:write")
async def update_webhook_endpoint(
    session: WriteSession, endpoint_id: UUID, data: EndpointUpdate, outbound: OutboundClient
) -> EndpointOut:
    """Update a webhook endpoint.

    Only the given fields change. A disabled endpoint gets no new deliveries and its pending ones wait; they continue
    when it is enabled.
    """
    return EndpointOut.from_row(await webhooks.update_endpoint(session, endpoint_id, data, outbound=outbound))


@blueprint.delete("/v1/webhook-endpoints/<endpoint_id>")
@endpoint(scope="webhooks:write", status=204)
async def delete_webhook_endpoint(session: WriteSession, endpoint_id: UUID) -> None:
    """Delete a webhook endpoint.

    Its pending deliveries are not sent.
    """
    await webhooks.delete_endpoint(session, endpoint_id)


@blueprint.get("/v1/webhook-endpoints/<endpoint_id>/deliveries")
@endpoint(scope="webhooks:read")
async def list_webhook_endpoint_deliveries(
    session: ReadSession, endpoint_id: UUID, query: DeliveryQuery
) -> Page[DeliveryOut]:
    """List an endpoint's deliveries."""
    await webhooks.get_endpoint(session, endpoint_id)
    return await paginate(
        session, select_deliveries(session, query, target_id=endpoint_id), DeliveryOut.from_row, query
    )


@blueprint.post("/v1/webhook-endpoints/<endpoint_id>/rotate-secret")
@endpoint(scope="webhooks:write")
async def rotate_webhook_secret(
    session: WriteSession, endpoint_id: UUID, query: RotateQuery, keyring: KeyRing
) -> RotatedSecret:
    """Rotate an endpoint's secret.

    With grace each delivery is signed with both secrets for 24 hours; a secret from an earlier rotation ends at once.
    """
    rotated, secret = await webhooks.rotate_endpoint_secret(session, endpoint_id, grace=query.grace, keyring=keyring)
    return RotatedSecret(secret=secret, previous_secret_expires_at=rotated.previous_secret_expires_at)


@blueprint.post("/v1/webhook-endpoints/<endpoint_id>/replay-failed")
@endpoint(scope="webhooks:write", errors=[InvalidState])
async def replay_failed_deliveries(session: WriteSession, endpoint_id: UUID, data: ReplayRequest) -> ReplayOut:
    """Replay an endpoint's failed deliveries of a period.

    In the order of their events, each with a new id, as with the replay of one. A delivery that has been replayed is
    left out, so that a repeated request sends nothing twice; a replay that failed itself is replayed. An addition to
    the specification.
    """
    return await deliveries.replay_failed_deliveries(session, endpoint_id, since=data.since, until=data.until)


@blueprint.post("/v1/webhook-endpoints/<endpoint_id>/test")
@endpoint(scope="webhooks:write", status=201, errors=[InvalidState])
async def send_test_event(session: WriteSession, endpoint_id: UUID) -> DeliveryOut:
    """Send a test event.

    A made-up `call.completed` with `"metadata": {"test": true}`, whatever the endpoint subscribes to; an addition to
    the specification.
    """
    return DeliveryOut.from_row(await deliveries.send_test_event(session, endpoint_id))


@blueprint.get("/v1/webhook-deliveries")
@endpoint(scope="webhooks:read")
async def list_webhook_deliveries(session: ReadSession, query: AllDeliveriesQuery) -> Page[DeliveryOut]:
    """List all deliveries.

    Includes deliveries to the webhooks of agents and of the integration; an addition to the specification.
    """
    return await paginate(session, select_deliveries(session, query), DeliveryOut.from_row, query)


@blueprint.get("/v1/webhook-deliveries/<delivery_id>")
@endpoint(scope="webhooks:read")
async def get_webhook_delivery(session: ReadSession, delivery_id: UUID) -> DeliveryOut:
    """Get a delivery.

    An addition to the specification.
    """
    return DeliveryOut.from_row(await get_row(session, Delivery, delivery_id))


@blueprint.get("/v1/webhook-deliveries/<delivery_id>/attempts")
@endpoint(scope="webhooks:read")
async def list_delivery_attempts(session: ReadSession, delivery_id: UUID) -> AttemptsOut:
    """List a delivery's attempts.

    In order, at most six; an addition to the specification.
    """
    delivery = await get_row(session, Delivery, delivery_id)
    attempts = await list_attempts(session, delivery.id)
    return AttemptsOut(items=[AttemptOut.model_validate(attempt) for attempt in attempts])


@blueprint.post("/v1/webhook-deliveries/<delivery_id>/replay")
@endpoint(scope="webhooks:write", status=201, errors=[InvalidState])
async def replay_delivery(session: WriteSession, delivery_id: UUID) -> DeliveryOut:
    """Replay a delivery.

    Creates a new delivery of the same body to the same endpoint, with its own id and `replayed_from_id`.
    """
    return DeliveryOut.from_row(await deliveries.replay_delivery(session, delivery_id))


@blueprint.get("/v1/webhook-events")
@endpoint(scope="webhooks:read")
async def list_webhook_events() -> EventsOut:
    """List the events that endpoints can subscribe to."""
    return EventsOut(items=[EventOut(name=name, description=kind.__doc__ or "") for name, kind in CATALOG.items()])
