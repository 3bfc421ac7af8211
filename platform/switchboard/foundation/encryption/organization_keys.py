"""Keys of one organization for one purpose, encrypted under the keyring: `switchboard keys rotate` changes only their
encryption.
"""

import secrets
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field, col, delete

from switchboard.foundation.database import TenantSession, TenantTable, encryption_label, lock_name, new_id
from switchboard.foundation.keyring import KeyRing

KEY_BYTES = 32
WRAPPED_LABEL = "organization_key|wrapped|{id}|{organization_id}"


class OrganizationKey(TenantTable, table=True):
    """A random key of 32 bytes, in hexadecimal digits and encrypted. An organization has one for each purpose."""

    __tablename__ = "organization_key"
    __table_args__ = (Index(None, "organization_id", "purpose"),)

    purpose: str
    wrapped: str = Field(sa_column_kwargs=encryption_label(WRAPPED_LABEL))


@dataclass(frozen=True, slots=True)
class DataKey:
    """A decrypted key, 32 bytes, and its id."""

    id: UUID
    secret: bytes


async def find_organization_key(session: TenantSession, purpose: str) -> DataKey | None:
    """Return the organization's key for a purpose, or None. Raises `SecretError`."""
    rows = session.select(OrganizationKey).where(col(OrganizationKey.purpose) == purpose)
    key = (await session.exec(rows)).one_or_none()
    return None if key is None else _unwrap(session, key)


async def find_organization_key_by_id(session: TenantSession, key_id: UUID) -> DataKey | None:
    """Return a key of the organization; None if it was destroyed. Raises `SecretError`."""
    key = (await session.exec(session.select(OrganizationKey).where(col(OrganizationKey.id) == key_id))).one_or_none()
    return None if key is None else _unwrap(session, key)


async def get_or_create_organization_key(session: TenantSession, purpose: str) -> DataKey:
    """Return the organization's key; concurrent transactions create the same one. Raises `SecretError`."""
    found = await find_organization_key(session, purpose)
    if found is None:
        await lock_name(session, f"key {purpose} of {session.organization_id}")
        found = await find_organization_key(session, purpose)
    if found is not None:
        return found
    created = DataKey(new_id(), secrets.token_bytes(KEY_BYTES))
    wrapped = _get_keyring(session).encrypt(created.secret.hex(), _label(created.id, session.organization_id))
    session.add(
        OrganizationKey(id=created.id, organization_id=session.organization_id, purpose=purpose, wrapped=wrapped)
    )
    await session.flush()
    return created


async def destroy_organization_key(session: TenantSession, purpose: str) -> UUID | None:
    """Delete the organization's key, and with it all that is encrypted under it; return its id, None without one."""
    ours = (session.owns(OrganizationKey), col(OrganizationKey.purpose) == purpose)
    destroyed = delete(OrganizationKey).where(*ours).returning(col(OrganizationKey.id))
    return (await session.exec(destroyed)).scalar_one_or_none()


def _unwrap(session: TenantSession, key: OrganizationKey) -> DataKey:
    secret = _get_keyring(session).decrypt(key.wrapped, _label(key.id, key.organization_id))
    return DataKey(key.id, bytes.fromhex(secret))


def _get_keyring(session: TenantSession) -> KeyRing:
    return cast("KeyRing", session.info["keyring"])


def _label(key_id: UUID, organization_id: UUID) -> str:
    return WRAPPED_LABEL.format(id=key_id, organization_id=organization_id)
