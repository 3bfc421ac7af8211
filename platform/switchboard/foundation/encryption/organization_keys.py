"""Keys of one organization for one purpose, encrypted under the keyring: `switchboard keys rotate` changes only their
encryption.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Index
from sqlalchemy.orm import Session
from sqlmodel import Field, col, delete, insert, select

from switchboard.foundation.database import TenantSession, TenantTable, build_lock, encryption_label, is_among, new_id
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
    return await session.run_sync(_find_key, session.organization_id, purpose)


async def find_organization_key_by_id(session: TenantSession, key_id: UUID) -> DataKey | None:
    """Return a key of the organization; None if it was destroyed. Raises `SecretError`."""
    rows = session.select(OrganizationKey).where(col(OrganizationKey.id) == key_id)
    key = (await session.exec(rows)).one_or_none()
    keyring: KeyRing = session.info["keyring"]
    return None if key is None else unwrap_key(keyring, key.id, key.organization_id, key.wrapped)


async def get_or_create_organization_key(session: TenantSession, purpose: str) -> DataKey:
    """Return the organization's key; concurrent transactions create the same one. Raises `SecretError`."""
    return await session.run_sync(get_or_create_key, session.organization_id, purpose)


def get_or_create_key(session: Session, organization_id: UUID, purpose: str) -> DataKey:
    """Return the organization's key, which is not deleted before the transaction ends. Raises `SecretError`.

    Synchronous and without the session's flush, because a flush calls it.
    """
    found = _find_key(session, organization_id, purpose, lock=True)
    if found is None:
        session.execute(build_lock(f"key {purpose} of {organization_id}"))
        found = _find_key(session, organization_id, purpose, lock=True)
    if found is not None:
        return found
    created = DataKey(new_id(), secrets.token_bytes(KEY_BYTES))
    keyring: KeyRing = session.info["keyring"]
    wrapped = keyring.encrypt(created.secret.hex(), _label(created.id, organization_id))
    row = OrganizationKey(id=created.id, organization_id=organization_id, purpose=purpose, wrapped=wrapped)
    session.execute(insert(OrganizationKey).values(row.model_dump()))
    return created


async def destroy_organization_keys(session: TenantSession, purposes: Sequence[str]) -> list[UUID]:
    """Delete the organization's keys, so that nothing under them can be decrypted any more; return their ids."""
    ours = (session.owns(OrganizationKey), is_among(col(OrganizationKey.purpose), purposes))
    destroyed = delete(OrganizationKey).where(*ours).returning(col(OrganizationKey.id))
    return list((await session.exec(destroyed)).scalars())


def unwrap_key(keyring: KeyRing, key_id: UUID, organization_id: UUID, wrapped: str) -> DataKey:
    """Decrypt a key. Raises `SecretError`."""
    return DataKey(key_id, bytes.fromhex(keyring.decrypt(wrapped, _label(key_id, organization_id))))


def _find_key(session: Session, organization_id: UUID, purpose: str, *, lock: bool = False) -> DataKey | None:
    rows = select(OrganizationKey.id, OrganizationKey.wrapped).where(
        col(OrganizationKey.organization_id) == organization_id, col(OrganizationKey.purpose) == purpose
    )
    if lock:
        rows = rows.with_for_update(read=True, key_share=True)
    key = session.execute(rows, execution_options={"autoflush": False}).one_or_none()
    return None if key is None else unwrap_key(session.info["keyring"], key.id, organization_id, key.wrapped)


def _label(key_id: UUID, organization_id: UUID) -> str:
    return WRAPPED_LABEL.format(id=key_id, organization_id=organization_id)
