"""Business rules of webhook endpoints."""

import secrets
from datetime import timedelta
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, lock_name, now
from switchboard.foundation.events.models import EventTarget
from switchboard.foundation.events.outbox import get_secret_label, remove_target
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient, validate_public_url
from switchboard.foundation.web.errors import InvalidState, NotFound
from switchboard.resources.webhooks.queries import list_endpoints
from switchboard.resources.webhooks.schemas import EndpointCreate, EndpointOut, EndpointUpdate

MOST_ENDPOINTS = 10
GRACE = timedelta(hours=24)


async def get_endpoint(session: ReadSession, endpoint_id: UUID) -> EventTarget:
    """Return an endpoint. Raises `NotFound`."""
    return _require_endpoint(await session.find(EventTarget, endpoint_id))


async def lock_endpoint(session: WriteSession, endpoint_id: UUID) -> EventTarget:
    """Lock an endpoint for an update, and return it as it is now. Raises `NotFound`."""
    return _require_endpoint(await session.lock(EventTarget, endpoint_id))


def _require_endpoint(endpoint: EventTarget | None) -> EventTarget:
    if endpoint is None or endpoint.kind != "endpoint":
        raise NotFound
    return endpoint


async def create_endpoint(
    session: WriteSession, data: EndpointCreate, *, keyring: KeyRing, outbound: OutboundClient
) -> tuple[EventTarget, str]:
    """Create an endpoint; return it with its secret. Raises `ValidationFailed` for an address, and `InvalidState`
    for the eleventh endpoint.
    """
    organization_id = session.organization_id
    # Serialize concurrent creations, so that they count each other.
    await lock_name(session, f"webhook endpoints {session.organization_id}")
    if len(await list_endpoints(session)) >= MOST_ENDPOINTS:
        raise InvalidState(f"An organization can have {MOST_ENDPOINTS} webhook endpoints.")
    endpoint = EventTarget(
        organization_id=organization_id,
        kind="endpoint",
        url=validate_public_url(outbound, data.url, field="url"),
        description=data.description,
        events=data.events or [],
    )
    secret = _new_secret(endpoint, keyring)
    session.add(endpoint)
    record_audit(session, AuditAction.WEBHOOK_ENDPOINT_CREATED, endpoint.id, fields=data.model_fields_set)
    return endpoint, secret


async def update_endpoint(
    session: WriteSession, endpoint_id: UUID, data: EndpointUpdate, *, outbound: OutboundClient
) -> EventTarget:
    """Change the given fields that differ. Raises `NotFound` and `ValidationFailed`."""
    endpoint = await lock_endpoint(session, endpoint_id)
    data = data.keep_changes(EndpointOut.from_row(endpoint))
    given = data.model_fields_set
    if not given:
        return endpoint
    if "url" in given:
        endpoint.url = validate_public_url(outbound, data.url, field="url")
    if "description" in given:
        endpoint.description = data.description
    if "events" in given:
        endpoint.events = data.events or []
    if "enabled" in given:
        endpoint.enabled = data.enabled
        if data.enabled:
            endpoint.consecutive_failures = 0
            session.wake("deliver_events")
    endpoint.updated_at = now()
    record_audit(session, AuditAction.WEBHOOK_ENDPOINT_UPDATED, endpoint.id, fields=given)
    return endpoint


async def delete_endpoint(session: WriteSession, endpoint_id: UUID) -> None:
    """Delete an endpoint; its pending deliveries fail. Raises `NotFound`."""
    endpoint = await get_endpoint(session, endpoint_id)
    await remove_target(session, endpoint.id)
    record_audit(session, AuditAction.WEBHOOK_ENDPOINT_DELETED, endpoint.id)


async def rotate_endpoint_secret(
    session: WriteSession, endpoint_id: UUID, *, grace: bool, keyring: KeyRing
) -> tuple[EventTarget, str]:
    """Replace the secret. With grace the previous one also signs for 24 hours; an older one ends. Raises `NotFound`."""
    endpoint = await lock_endpoint(session, endpoint_id)
    endpoint.previous_secret = endpoint.secret if grace else None
    endpoint.previous_secret_expires_at = now() + GRACE if grace else None
    endpoint.updated_at = now()
    secret = _new_secret(endpoint, keyring)
    record_audit(session, AuditAction.WEBHOOK_ENDPOINT_SECRET_ROTATED, endpoint.id)
    return endpoint, secret


def _new_secret(endpoint: EventTarget, keyring: KeyRing) -> str:
    secret = f"whsec_{secrets.token_urlsafe(32)}"
    endpoint.secret = keyring.encrypt(secret, get_secret_label(endpoint.kind, endpoint.id, endpoint.organization_id))
    return secret
