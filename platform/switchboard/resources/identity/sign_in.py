"""Signing in and out of the dashboard.

A browser session is a random token in a cookie; the server stores its hash, so that sessions can be listed and ended. A
session lasts 14 days from its last use and 90 days from its start. The page limits the attempts.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from switchboard.foundation.database import Database, now
from switchboard.foundation.jobs import repeat_in_batches
from switchboard.foundation.web.errors import NotFound
from switchboard.resources.identity import passwords, queries
from switchboard.resources.identity.authentication import digest
from switchboard.resources.identity.models import NoticeTone, Organization, SupportSession, User, UserSession
from switchboard.resources.identity.queries import SESSION_IDLE_LIFETIME, SESSION_LIFETIME
from switchboard.resources.identity.service import IdentityError, hash_new_password, lock_user
from switchboard.resources.identity.support import ACTING_ROLE

COARSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class AuthenticatedSession:
    """A browser session's user, organization, and role; `organization` is None for a user who is not a member of it,
    or of none. `support` is the support session of a superadmin who has entered the organization for support.
    """

    session: UserSession
    user: User
    organization: Organization | None
    role: str | None
    support: SupportSession | None = None


async def verify_user(database: Database, email: str, password: str) -> User:
    """Return the user with an e-mail address and a password. Raises `IdentityError`, which does not tell an unknown
    user and a wrong password apart.
    """
    async with database.system() as session:
        user = await queries.find_user(session, email)
    fits = await passwords.verify_password(user.password_hash if user else "", password)
    if user is None or not fits:
        raise IdentityError("Wrong e-mail address or password.")
    return user


async def create_session(
    database: Database, user: User, *, address: str, user_agent: str, organization_id: UUID | None = None
) -> str:
    """Create a session for an authenticated user, in the organization that the user has just joined or in the first
    one by name; return its token, which is not stored. Users recognize their sessions by address and user agent.

    Raises `IdentityError` if the account has changed since it was authenticated.
    """
    token = secrets.token_urlsafe(32)
    async with database.system() as session:
        await lock_user(session, user)
        if organization_id is None:
            organizations = await queries.list_organizations(session, user, limit=1)
            organization_id = organizations[0][0].id if organizations else None
        session.add(
            UserSession(
                user_id=user.id,
                token_hash=digest(token),
                organization_id=organization_id,
                address=address,
                user_agent=user_agent[:400],
            )
        )
    return token


async def resume_session(database: Database, token: str) -> AuthenticatedSession | None:
    """Return the session of a token; None for an unknown or expired one."""
    async with database.system() as session:
        found = await queries.find_user_session(session, digest(token))
        if found is None:
            return None
        signed_in, user, organization, role = found
        if signed_in.last_seen_at < now() - SESSION_IDLE_LIFETIME or signed_in.created_at < now() - SESSION_LIFETIME:
            return None
        if signed_in.last_seen_at < now() - COARSE:
            signed_in.last_seen_at = now()
        if organization is not None and role is None and user.is_superadmin:
            support = await queries.find_support_session(session, signed_in.id, organization.id)
            if support is not None:
                return AuthenticatedSession(signed_in, user, organization, ACTING_ROLE, support)
        if role is None:
            # The user has left a support session, or was removed: go on in the first organization, as after sign-in.
            organizations = await queries.list_organizations(session, user, limit=1)
            organization, role = organizations[0] if organizations else (None, None)
            signed_in.organization_id = organization.id if organization else None
        return AuthenticatedSession(signed_in, user, organization, role)


async def can_enter(database: Database, session_id: UUID, organization_id: UUID) -> bool:
    """Return whether a browser session is alive and its user may still enter an organization."""
    async with database.system() as session:
        signed_in = await session.get(UserSession, session_id)
        user = await session.get(User, signed_in.user_id) if signed_in else None
        if user is None:
            return False
        if await queries.find_membership(session, user.id, organization_id) is not None:
            return True
        if not user.is_superadmin:
            return False
        return await queries.find_support_session(session, session_id, organization_id) is not None


async def list_sessions(database: Database, user_id: UUID) -> list[UserSession]:
    """List a user's browser sessions, last used first."""
    async with database.system() as session:
        return await queries.list_user_sessions(session, user_id)


async def sign_out(database: Database, user_id: UUID, *, only: UUID | None = None, but: UUID | None = None) -> None:
    """End a user's sessions: one, all but one, or all. Ending a session that is over is not an error."""
    async with database.system() as session:
        await queries.delete_user_sessions(session, user_id, only=only, but=but)


async def delete_old_sessions(database: Database) -> None:
    await repeat_in_batches(database, queries.delete_expired_sessions)


async def find_language(database: Database, email: str) -> str | None:
    """Return the language that the user with an address has chosen, if there is one."""
    async with database.system() as session:
        user = await queries.find_user(session, email)
    return user.language if user else None


async def save_language(database: Database, user_id: UUID, language: str | None) -> None:
    """Save the language that a user reads; None for the organization's or the browser's."""
    async with database.system() as session:
        (await session.get_one(User, user_id)).language = language


async def list_user_organizations(database: Database, user: User) -> list[tuple[Organization, str]]:
    """List the organizations that a user may enter, by name, with the user's role in each."""
    async with database.system() as session:
        return await queries.list_organizations(session, user)


async def enter_organization(database: Database, user: User, session_id: UUID, organization_id: UUID) -> None:
    """Switch a session to another organization. Raises `NotFound` for one that the user may not enter."""
    async with database.system() as session:
        if await queries.find_membership(session, user.id, organization_id) is None:
            raise NotFound
        (await session.get_one(UserSession, session_id)).organization_id = organization_id


async def save_notice(database: Database, session_id: UUID, notice: str | None, tone: NoticeTone = "done") -> None:
    """Store a notice for the session's next page."""
    async with database.system() as session:
        found = await session.get(UserSession, session_id)
        if found is not None:
            found.notice, found.notice_tone = notice, tone


async def change_password(database: Database, user: User, *, new: str, keep: UUID) -> None:
    """Change the password of a user just authenticated, and end the user's other sessions. Raises `IdentityError`."""
    password_hash = await hash_new_password(new)
    async with database.system() as session:
        (await lock_user(session, user)).password_hash = password_hash
        await queries.delete_user_sessions(session, user.id, but=keep)
