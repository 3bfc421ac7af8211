"""Keys of one organization for one purpose, encrypted under the keyring: `switchboard keys rotate` changes only their
encryption.
"""

import secrets
from typing import cast
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field, col

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


async def find_organization_key(session: TenantSession, purpose: str) -> bytes | None:
    """Return the organization's key, or None. Raises `SecretError`."""
    rows = session.select(OrganizationKey).where(col(OrganizationKey.purpose) == purpose)
    key = (await session.exec(rows)).one_or_none()
    if key is None:
        return None
    return bytes.fromhex(_get_keyring(session).decrypt(key.wrapped, _label(key.id, key.organization_id)))


async def get_or_create_organization_key(session: TenantSession, purpose: str) -> bytes:
    """Return the organization's key; concurrent transactions create the same one. Raises `SecretError`."""
    await lock_name(session, f"key {purpose} of {session.organization_id}")
    found = await find_organization_key(session, purpose)
    if found is not None:
        return found
    created = secrets.token_bytes(KEY_BYTES)
    key_id = new_id()
    wrapped = _get_keyring(session).encrypt(created.hex(), _label(key_id, session.organization_id))
    session.add(OrganizationKey(id=key_id, organization_id=session.organization_id, purpose=purpose, wrapped=wrapped))
    await session.flush()
    return created


def _get_keyring(session: TenantSession) -> KeyRing:
    return cast("KeyRing", session.info["keyring"])


def _label(key_id: UUID, organization_id: UUID) -> str:
    return WRAPPED_LABEL.format(id=key_id, organization_id=organization_id)
