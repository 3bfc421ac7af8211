"""Event targets that belong to another resource: an agent's webhook, and the integration's."""

from typing import Literal
from uuid import UUID

from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select, update

from switchboard.foundation.database import TenantSession, now
from switchboard.foundation.events.models import TARGET_LABEL, Delivery, EventTarget
from switchboard.foundation.keyring import KeyRing

OWNERLESS = "the receiver was deleted"


async def get_or_create_target(
    session: TenantSession, kind: Literal["agent", "integration"], target_id: UUID
) -> EventTarget:
    """Return the target of its owner, locked; created without an address if needed."""
    organization_id = session.organization_id
    moment = now()
    fresh: dict[str, object] = {
        "id": target_id,
        "organization_id": organization_id,
        "kind": kind,
        "events": [],
        "enabled": True,
        "consecutive_failures": 0,
    }
    await session.exec(
        insert(EventTarget).values(**fresh, created_at=moment, updated_at=moment).on_conflict_do_nothing()
    )
    rows = select(EventTarget).where(
        col(EventTarget.organization_id) == organization_id, col(EventTarget.id) == target_id
    )
    return (await session.exec(rows.with_for_update())).one()


async def decrypt_secret(
    session: TenantSession, kind: Literal["agent", "integration"], target_id: UUID, keyring: KeyRing
) -> str | None:
    """Decrypt the secret that signs requests to a target; None without one."""
    organization_id = session.organization_id
    rows = select(EventTarget.secret).where(
        col(EventTarget.organization_id) == organization_id, col(EventTarget.id) == target_id
    )
    secret = (await session.exec(rows)).one_or_none()
    return keyring.decrypt(secret, get_secret_label(kind, target_id, organization_id)) if secret else None


async def remove_target(session: TenantSession, target_id: UUID) -> None:
    """Delete a target; its pending deliveries fail. Its deliveries remain visible."""
    organization_id = session.organization_id
    rows = select(EventTarget).where(
        col(EventTarget.organization_id) == organization_id, col(EventTarget.id) == target_id
    )
    target = (await session.exec(rows.with_for_update())).one_or_none()
    if target is None:
        return
    await session.delete(target)
    waiting = (
        col(Delivery.organization_id) == organization_id,
        col(Delivery.target_id) == target_id,
        col(Delivery.status) == "pending",
    )
    await session.exec(
        update(Delivery)
        .where(*waiting)
        .values(status="failed", last_error=OWNERLESS, next_attempt_at=None, due_at=None, lease_token=None)
    )


def get_secret_label(kind: str, target_id: UUID, organization_id: UUID) -> str:
    """Return the encryption label of a target's secrets."""
    return TARGET_LABEL.format(kind=kind, id=target_id, organization_id=organization_id)
