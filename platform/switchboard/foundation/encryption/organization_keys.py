"""Keys of one organization for one purpose, encrypted under the keyring: `switchboard keys rotate` changes only their
encryption.
"""

import secrets
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Index
from sqlmodel import Field, col, delete, insert

from switchboard.foundation.database import (
    ReadSession,
    TenantTable,
    WriteSession,
    encryption_label,
    is_among,
    lock_name,
    new_id,
)
from switchboard.foundation.keyring import DataKey, KeyRing

KEY_BYTES = 32
WRAPPED_LABEL = "organization_key|wrapped|{id}|{organization_id}"


class OrganizationKey(TenantTable, table=True):
    """A random key of 32 bytes, in hexadecimal digits and encrypted. An organization has one for each purpose."""

    __tablename__ = "organization_key"
    __table_args__ = (Index(None, "organization_id", "purpose"),)

    purpose: str
    wrapped: str = Field(sa_column_kwargs=encryption_label(WRAPPED_LABEL))


async def find_organization_key(session: ReadSession, purpose: str) -> DataKey | None:
    """Return the organization's key for a purpose, or None. Raises `SecretError`."""
    rows = session.select(OrganizationKey).where(col(OrganizationKey.purpose) == purpose)
    return _unwrap(session, (await session.exec(rows)).one_or_none())


async def find_organization_key_by_id(session: ReadSession, key_id: UUID) -> DataKey | None:
    """Return a key of the organization; None if it was destroyed. Raises `SecretError`."""
    return _unwrap(session, await session.find(OrganizationKey, key_id))


async def get_or_create_organization_key(session: WriteSession, purpose: str) -> DataKey:
    """Return the organization's key, which is not deleted before the transaction ends; concurrent transactions create
    the same one. Raises `SecretError`.
    """
    rows = session.select(OrganizationKey).where(col(OrganizationKey.purpose) == purpose)
    rows = rows.with_for_update(read=True, key_share=True)
    found = _unwrap(session, (await session.exec(rows)).one_or_none())
    if found is None:
        await lock_name(session, f"key {purpose} of {session.organization_id}")
        found = _unwrap(session, (await session.exec(rows)).one_or_none())
    if found is not None:
        return found
    created = DataKey(new_id(), secrets.token_bytes(KEY_BYTES))
    wrapped = session.keyring.encrypt(created.secret.hex(), _label(created.id, session.organization_id))
    row = OrganizationKey(id=created.id, organization_id=session.organization_id, purpose=purpose, wrapped=wrapped)
    await session.exec(insert(OrganizationKey).values(row.model_dump()))
    return created


async def destroy_organization_keys(session: WriteSession, purposes: Sequence[str]) -> list[UUID]:
    """Delete the organization's keys, so that nothing under them can be decrypted any more; return their ids."""
    ours = (session.owns(OrganizationKey), is_among(col(OrganizationKey.purpose), purposes))
    destroyed = delete(OrganizationKey).where(*ours).returning(col(OrganizationKey.id))
    return list((await session.exec(destroyed)).scalars())


def unwrap_key(keyring: KeyRing, key_id: UUID, organization_id: UUID, wrapped: str) -> DataKey:
    """Decrypt a key. Raises `SecretError`."""
    return DataKey(key_id, bytes.fromhex(keyring.decrypt(wrapped, _label(key_id, organization_id))))


def _unwrap(session: ReadSession, key: OrganizationKey | None) -> DataKey | None:
    return None if key is None else unwrap_key(session.keyring, key.id, key.organization_id, key.wrapped)


def _label(key_id: UUID, organization_id: UUID) -> str:
    return WRAPPED_LABEL.format(id=key_id, organization_id=organization_id)
