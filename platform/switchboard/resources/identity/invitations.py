"""Accepting invitations. A link names no organization, so these transactions cross organizations until the membership
is made.
"""

from dataclasses import dataclass
from uuid import UUID

from sqlmodel import col, select

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.identity import system_queries
from switchboard.resources.identity.credentials import digest
from switchboard.resources.identity.models import Invitation, Membership, Organization, User
from switchboard.resources.identity.service import IdentityError, hash_new_password, normalize_email


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of an invitation to the user who opens its link; `has_account` is true for a known e-mail address."""

    organization: Organization
    email: str
    role: str
    has_account: bool


async def get_offer(database: Database, token: str) -> Offer:
    """Return what a link offers. Raises `NotFound` for one that was used, was withdrawn, or has expired."""
    async with database.system() as session:
        invitation = await _find_invitation(session, token)
        organization = await session.get_one(Organization, invitation.organization_id)
        has_account = await system_queries.find_user(session, invitation.email) is not None
        return Offer(organization, invitation.email, invitation.role, has_account)


async def accept_invitation(database: Database, token: str, *, password: str = "", as_user: UUID | None = None) -> UUID:
    """Accept an invitation as a signed-in user, or as a new user with a password; return the user's id.

    Raises `NotFound` for a link that no longer works, and `IdentityError` for a password that is too short or an
    account with another e-mail address than the invited one.
    """
    if as_user is None:
        await get_offer(database, token)  # before the hash, which costs much
    password_hash = await hash_new_password(password) if as_user is None else ""
    async with database.system() as session:
        invitation = await _find_invitation(session, token)
        user = await system_queries.find_user(session, invitation.email, lock=True)
        if user is not None and user.id != as_user:
            raise IdentityError(f"Sign in as {invitation.email} to accept this invitation.")
        if user is None and as_user is not None:
            raise IdentityError(f"This invitation is for {invitation.email}. Sign out to accept it.")
        if user is None:
            user = User(email=invitation.email, password_hash=password_hash)
            session.add(user)
            await session.flush()
        await _join(session, user, invitation)
        return user.id


async def find_or_create_invited_user(database: Database, email: str) -> UUID:
    """Return the user with an e-mail address that an identity provider has verified, and accept the user's open
    invitations.

    A new user needs an invitation. Raises `IdentityError` for an address that has neither.
    """
    address = normalize_email(email)
    async with database.system() as session:
        user = await system_queries.find_user(session, address, lock=True)
        rows = select(Invitation).where(col(Invitation.email) == address, col(Invitation.expires_at) > now())
        invitations = (await session.exec(rows.with_for_update())).all()
        if user is None and not invitations:
            raise IdentityError(f"{address} belongs to no organization here. Ask an owner to invite you.")
        if user is None:
            user = User(email=address, password_hash="")
            session.add(user)
            await session.flush()
        for invitation in invitations:
            await _join(session, user, invitation)
        return user.id


async def _find_invitation(session: SystemSession, token: str) -> Invitation:
    rows = select(Invitation).where(col(Invitation.token_hash) == digest(token), col(Invitation.expires_at) > now())
    invitation = (await session.exec(rows.with_for_update())).one_or_none()
    if invitation is None:
        raise NotFound("This invitation was used, was withdrawn, or has expired. Ask for a new one.")
    return invitation


async def _join(session: SystemSession, user: User, invitation: Invitation) -> None:
    organization_id = invitation.organization_id
    rows = select(Membership).where(
        col(Membership.organization_id) == organization_id, col(Membership.user_id) == user.id
    )
    if (await session.exec(rows)).one_or_none() is None:
        session.add(Membership(organization_id=organization_id, user_id=user.id, role=invitation.role))
        record_audit_as(session, organization_id, f"user:{user.id}", AuditAction.MEMBER_JOINED, user.id)
    await session.delete(invitation)
