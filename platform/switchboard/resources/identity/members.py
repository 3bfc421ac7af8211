"""Who belongs to an organization, and who is invited to.

An invitation is a link that works once within seven days: we send no mail, whoever invites passes the link on. At least one owner stays.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import UUID

from sqlmodel import col, func, select

from switchboard.foundation.database import Database, SystemSession, TenantSession, now
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.identity import system_queries
from switchboard.resources.identity.credentials import digest
from switchboard.resources.identity.models import AuditEntry, Invitation, Membership, Organization, User
from switchboard.resources.identity.service import IdentityError, checked_email
from switchboard.resources.identity.sign_in import hashed

Role = Literal["owner", "member"]
INVITED = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who belongs to an organization."""

    user_id: UUID
    email: str
    role: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What an open invitation says to whoever opens it; `known` when they have an account already."""

    organization: Organization
    email: str
    role: str
    known: bool


async def members(database: Database, organization_id: UUID) -> list[Member]:
    """The members of an organization, by address."""
    async with database.system() as session:
        rows = select(User.id, User.email, Membership.role).join(Membership, col(Membership.user_id) == col(User.id))
        found = await session.exec(rows.where(col(Membership.organization_id) == organization_id).order_by(User.email))
        return [Member(*row) for row in found]


async def invitations(session: TenantSession) -> list[Invitation]:
    """The organization's invitations that are still open, newest first."""
    mine = session.select(Invitation).where(col(Invitation.expires_at) > now())
    return list((await session.exec(mine.order_by(col(Invitation.created_at).desc()))).all())


async def invite(session: TenantSession, *, email: str, role: Role) -> tuple[Invitation, str]:
    """Invite somebody; the link's token is answered once and not kept. An older invitation of theirs stops working. Raises `IdentityError`."""
    address, organization_id = checked_email(email), session.organization_id
    earlier = select(Invitation).where(
        col(Invitation.organization_id) == organization_id, col(Invitation.email) == address
    )
    for invitation in await session.exec(earlier.with_for_update()):
        await session.delete(invitation)
    await session.flush()
    token = secrets.token_urlsafe(32)
    invitation = Invitation(
        organization_id=organization_id, email=address, role=role, token_hash=digest(token), expires_at=now() + INVITED
    )
    session.add(invitation)
    return invitation, token


async def withdraw(session: TenantSession, invitation_id: UUID) -> None:
    """Make an invitation's link worthless. Raises `NotFound`."""
    mine = session.select(Invitation).where(col(Invitation.id) == invitation_id)
    invitation = (await session.exec(mine)).one_or_none()
    if invitation is None:
        raise NotFound
    await session.delete(invitation)


async def offered(database: Database, token: str) -> Offer:
    """What a link offers. Raises `NotFound` for one that was used, withdrawn, or is too old."""
    async with database.system() as session:
        invitation = await _open(session, token)
        organization = await session.get_one(Organization, invitation.organization_id)
        known = await system_queries.find_user(session, invitation.email) is not None
        return Offer(organization, invitation.email, invitation.role, known)


async def accept(database: Database, token: str, *, password: str = "", as_user: UUID | None = None) -> UUID:
    """Use a link: as who is signed in, or as somebody new, who chooses a password. Answers who joined.

    Raises `NotFound` for a link that no longer works, and `IdentityError` for a password that is too short or an account that belongs to another
    address than the invited one.
    """
    password_hash = await hashed(password) if as_user is None else ""
    async with database.system() as session:
        invitation = await _open(session, token)
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


async def find_or_admit(database: Database, email: str) -> UUID:
    """Who has an address that an identity provider has verified; somebody new joins where they are invited. Raises `IdentityError` for a stranger."""
    address = checked_email(email)
    async with database.system() as session:
        user = await system_queries.find_user(session, address, lock=True)
        invited = (
            select(Invitation)
            .where(col(Invitation.email) == address, col(Invitation.expires_at) > now())
            .with_for_update()
        )
        found = (await session.exec(invited)).all()
        if user is None and not found:
            raise IdentityError(f"{address} belongs to no organization here. Ask an owner to invite you.")
        if user is None:
            user = User(email=address, password_hash="")
            session.add(user)
            await session.flush()
        for invitation in found:
            await _join(session, user, invitation)
        return user.id


async def _join(session: SystemSession, user: User, invitation: Invitation) -> None:
    if await _membership(session, invitation.organization_id, user.id) is None:
        session.add(Membership(organization_id=invitation.organization_id, user_id=user.id, role=invitation.role))
        entry = AuditEntry(
            organization_id=invitation.organization_id,
            actor=f"user:{user.id}",
            action="member.joined",
            subject=invitation.role,
        )
        session.add(entry)
    await session.delete(invitation)


async def change_role(database: Database, organization_id: UUID, user_id: UUID, role: Role) -> None:
    """Make a member an owner, or an owner a member. Raises `NotFound`, and `IdentityError` for the last owner."""
    async with database.system() as session:
        membership = await _membership_or_404(session, organization_id, user_id)
        if membership.role == "owner" and role != "owner":
            await _refuse_last_owner(session, organization_id)
        membership.role = role


async def remove(database: Database, organization_id: UUID, user_id: UUID) -> None:
    """End a membership; what the person did stays. Raises `NotFound`, and `IdentityError` for the last owner."""
    async with database.system() as session:
        membership = await _membership_or_404(session, organization_id, user_id)
        if membership.role == "owner":
            await _refuse_last_owner(session, organization_id)
        await session.delete(membership)


async def _open(session: SystemSession, token: str) -> Invitation:
    rows = select(Invitation).where(col(Invitation.token_hash) == digest(token), col(Invitation.expires_at) > now())
    invitation = (await session.exec(rows.with_for_update())).one_or_none()
    if invitation is None:
        raise NotFound("This invitation was used, withdrawn, or is too old. Ask for a new one.")
    return invitation


async def _membership(session: SystemSession, organization_id: UUID, user_id: UUID) -> Membership | None:
    rows = select(Membership).where(
        col(Membership.organization_id) == organization_id, col(Membership.user_id) == user_id
    )
    return (await session.exec(rows)).one_or_none()


async def _membership_or_404(session: SystemSession, organization_id: UUID, user_id: UUID) -> Membership:
    # The organization's row is the lock: two owners who remove each other must not both succeed. Its key stays free for whoever writes a row of the
    # organization: a token that is being issued would wait for us, and we for its approval, which goes with the membership.
    await session.exec(
        select(Organization.id).where(col(Organization.id) == organization_id).with_for_update(key_share=True)
    )
    membership = await _membership(session, organization_id, user_id)
    if membership is None:
        raise NotFound
    return membership


async def _refuse_last_owner(session: SystemSession, organization_id: UUID) -> None:
    rows = (
        select(func.count())
        .select_from(Membership)
        .where(col(Membership.organization_id) == organization_id, col(Membership.role) == "owner")
    )
    if (await session.exec(rows)).one() == 1:
        raise IdentityError("An organization needs an owner: make somebody else one first.")
