"""Business rules of the integration."""

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.events.models import EventTarget
from switchboard.foundation.events.outbox import get_secret_label
from switchboard.foundation.events.queries import get_or_create_target
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient, validate_public_url
from switchboard.foundation.web.paging import lock_row
from switchboard.resources.integrations.models import PARTNER_API_KEY_LABEL, Integration
from switchboard.resources.integrations.queries import find_integration_target
from switchboard.resources.integrations.schemas import IntegrationOut, IntegrationUpdate


async def find_integration(session: ReadSession) -> IntegrationOut | None:
    """Return the integration; None if it has not been set up."""
    found = await find_integration_target(session)
    return _out(*found) if found else None


async def update_integration(
    session: WriteSession, data: IntegrationUpdate, *, keyring: KeyRing, outbound: OutboundClient
) -> IntegrationOut:
    """Change the given fields that differ. Raises `ValidationFailed` for an address that is not public."""
    await session.insert_if_new(Integration(id=session.organization_id, organization_id=session.organization_id))
    integration = await lock_row(session, Integration, session.organization_id)
    target = await get_or_create_target(session, "integration", integration.id)
    data = data.keep_changes(_out(integration, target))
    given = data.model_fields_set
    if not given:
        return _out(integration, target)
    if "partner_api_key" in given:
        place = PARTNER_API_KEY_LABEL.format(id=integration.id, organization_id=integration.organization_id)
        integration.partner_api_key = (
            None if data.partner_api_key is None else keyring.encrypt(data.partner_api_key, place)
        )
    if "webhook_url" in given:
        target.url = validate_public_url(outbound, data.webhook_url, field="webhook_url")
    if "webhook_secret" in given:
        label = get_secret_label(target.kind, target.id, target.organization_id)
        target.secret = None if data.webhook_secret is None else keyring.encrypt(data.webhook_secret, label)
    integration.updated_at = target.updated_at = now()
    record_audit(session, AuditAction.INTEGRATION_UPDATED, integration.id, fields=given)
    return _out(integration, target)


def _out(integration: Integration, target: EventTarget) -> IntegrationOut:
    return IntegrationOut(
        has_partner_api_key=integration.partner_api_key is not None,
        webhook_url=target.url,
        has_webhook_secret=target.secret is not None,
        updated_at=integration.updated_at,
    )
