"""Business rules of organizations and their suspension, API keys, and users."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import DatabaseSession, ReadSession, SystemSession, WriteSession, now
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import OrganizationMoving
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.identity import passwords
from switchboard.resources.identity.authentication import API_KEY, digest, new_credential
from switchboard.resources.identity.models import ApiKey, Membership, Organization, User
from switchboard.resources.identity.policy import Policy
from switchboard.resources.identity.queries import get_stored_policy, lock_user_by_email

OPERATOR = "operator"
MOST_POLICIES = 1000
EMAIL = re.compile(r"[^@\s()<>\[\]:;\\,\"]+@[^@\s()<>\[\]:;\\,\"]+\.[^@\s()<>\[\]:;\\,\"]+")
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 10, 1000


class IdentityError(Exception):
    """The request cannot be carried out; the message is one line for the user."""


def create_organization(
    session: AsyncSession, *, name: str, slug: str | None = None, policy: Policy | None = None
) -> Organization:
    """Create an organization without providers. Raises `IdentityError` for an empty name."""
    if not name.strip():
        raise IdentityError("an organization needs a name")
    organization = Organization(name=name.strip(), slug=slug, policy=policy or Policy())
    session.add(organization)
    return organization


async def get_policy(session: DatabaseSession, organization_id: UUID) -> Policy:
    """Return an organization's policy, which a session reads once."""
    policy = session.policies.get(organization_id)
    if not isinstance(policy, Policy):
        stored = await get_stored_policy(session, organization_id)
        policy = session.policies[organization_id] = _parse_policy(stored)
    return policy


async def encrypts_content(session: WriteSession) -> bool:
    """Return whether the organization's policy encrypts the content of its conversations."""
    return (await get_policy(session, session.organization_id)).encryption.texts


@lru_cache(MOST_POLICIES)
def _parse_policy(stored: str) -> Policy:
    return Policy.model_validate_json(stored, extra="ignore")


async def find_organization(session: AsyncSession, organization_id: UUID) -> Organization:
    """Return an organization. Raises `IdentityError` for an unknown id."""
    return _require_organization(await session.get(Organization, organization_id), organization_id)


async def lock_organization(session: SystemSession, organization_id: UUID) -> Organization:
    """Lock and return an organization. Raises `IdentityError` for an unknown id."""
    found = await session.get(Organization, organization_id, with_for_update={"key_share": True})
    return _require_organization(found, organization_id)


def _require_organization(organization: Organization | None, organization_id: UUID) -> Organization:
    if organization is None:
        raise IdentityError(f"there is no organization {organization_id}; `switchboard orgs list` shows them")
    return organization


async def create_api_key(
    session: WriteSession, *, name: str, scopes: Sequence[str], expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """Create an API key; return it and its text, which is not stored.

    Raises `IdentityError` for an unknown scope or organization.
    """
    unknown = sorted(set(scopes) - SCOPES.keys())
    if unknown:
        raise IdentityError(f"there is no scope {unknown[0]}; the scopes are {', '.join(SCOPES)}")
    if not scopes:
        raise IdentityError("a key needs at least one scope")
    await find_organization(session, session.organization_id)
    key, text = _add_key(session, name=name, scopes=scopes, expires_at=expires_at)
    _record(
        session, AuditAction.API_KEY_CREATED, key.id, fields=("name", "scopes", *(["expires_at"] if expires_at else []))
    )
    return key, text


def _add_key(
    session: WriteSession, *, name: str, scopes: Sequence[str], expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    text = new_credential(API_KEY)
    key = ApiKey(
        organization_id=session.organization_id,
        name=name,
        key_hash=digest(text),
        hint=text[-4:],
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
    )
    session.add(key)
    return key, text


async def rotate_api_key(session: WriteSession, key_id: UUID, *, overlap: timedelta) -> tuple[ApiKey, str]:
    """Create a key with the same scopes, and let the old one expire after `overlap`, so that programs can switch
    without a pause.

    Raises `IdentityError` for an unknown key, or one that has expired or was revoked.
    """
    old = await _lock_key(session, key_id)
    if old.state != "active":
        raise IdentityError(f"the key was {old.state} already")
    ends = now() + overlap
    old.expires_at = min(old.expires_at, ends) if old.expires_at else ends
    key, text = _add_key(session, name=old.name, scopes=old.scopes)
    _record(session, AuditAction.API_KEY_ROTATED, f"{old.id} to {key.id}")
    return key, text


async def revoke_api_key(session: WriteSession, key_id: UUID) -> ApiKey:
    """Revoke a key for good; harmless when repeated. The caller notifies the rate limiter. Raises `IdentityError` for
    an unknown key.
    """
    key = await _lock_key(session, key_id)
    if key.revoked_at is None:
        key.revoked_at = now()
        _record(session, AuditAction.API_KEY_REVOKED, key.id)
    return key


async def _lock_key(session: WriteSession, key_id: UUID) -> ApiKey:
    key = await session.lock(ApiKey, key_id)
    if key is None:
        raise IdentityError(f"there is no API key {key_id}")
    return key


def _record(session: WriteSession, action: AuditAction, subject: object, *, fields: Iterable[str] = ()) -> None:
    record_audit_as(session, session.organization_id, session.actor or OPERATOR, action, subject, fields=fields)


async def create_user(
    session: DatabaseSession,
    *,
    email: str,
    password: str,
    superadmin: bool = False,
    organization_id: UUID | None = None,
) -> User:
    """Create a user whose address the operator vouches for, as an owner of an organization if one is given. Raises
    `IdentityError`.
    """
    address = normalize_email(email)
    password_hash = await hash_new_password(password)
    user = User(email=address, email_verified_at=now(), password_hash=password_hash, is_superadmin=superadmin)
    session.add(user)
    await session.flush_or_raise(IdentityError(f"there is a user {address} already"))
    if organization_id is not None:
        await add_owner(session, user, organization_id)
    return user


async def add_owner(session: DatabaseSession, user: User | None, organization_id: UUID) -> User:
    """Make a user an owner of an organization. Raises `IdentityError` for an unknown user or organization, for a
    member, and for a user whose address nobody has proven.
    """
    if user is None:
        raise IdentityError("there is no user of that e-mail address")
    if user.email_verified_at is None:
        raise IdentityError(
            f"nobody has proven the address {user.email}: `switchboard users confirm` makes them a link"
        )
    if (await find_organization(session, organization_id)).moving_since is not None:
        raise IdentityError(OrganizationMoving.default_detail)
    member = Membership(organization_id=organization_id, user_id=user.id, role="owner")
    session.add(member)
    await session.flush_or_raise(IdentityError(f"{user.email} is a member of the organization already"))
    record_audit_as(session, organization_id, OPERATOR, AuditAction.MEMBER_ADDED, user.id)
    return user


async def get_user(session: SystemSession, email: str) -> User:
    """Lock and return the user with an e-mail address. Raises `IdentityError` for an unknown one."""
    user = await lock_user_by_email(session, email)
    if user is None:
        raise IdentityError(f"there is no user {email}")
    return user


async def lock_user(session: SystemSession, user: User) -> User:
    """Lock a user who was just authenticated, for a change that lasts: a new session, key, or password.

    Raises `IdentityError` if the account was replaced or its password changed meanwhile: that change has ended what the
    old password began.
    """
    locked = await session.get(User, user.id, with_for_update=True)
    if locked is None or locked.password_hash != user.password_hash:
        raise IdentityError(_("The password of this account has just changed. Sign in again."))
    return locked


async def hash_new_password(password: str) -> str:
    """Hash a password that a user has chosen. Raises `IdentityError` for one that is too short or too long."""
    if len(password) < MIN_PASSWORD_LENGTH:
        raise IdentityError(f"a password needs at least {MIN_PASSWORD_LENGTH} characters")
    if len(password) > MAX_PASSWORD_LENGTH:  # hashing it would be an attack
        raise IdentityError(f"a password has at most {MAX_PASSWORD_LENGTH} characters")
    return await asyncio.to_thread(passwords.HASHER.hash, password)


def normalize_email(text: str) -> str:
    """Return an e-mail address in lower case. Raises `IdentityError` for text that is not an e-mail address.

    Characters that make a header of it name another mailbox, or several, are refused (RFC 5322, section 3.2.3).
    """
    if not EMAIL.fullmatch(text) or len(text) > 254:
        raise IdentityError(f"{text} is not an e-mail address")
    return text.lower()


async def is_suspended(session: ReadSession) -> bool:
    return (await session.get_one(Organization, session.organization_id)).suspended_at is not None
