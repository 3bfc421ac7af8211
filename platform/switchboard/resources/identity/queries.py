"""Statements about organizations, API keys, users, and their sessions.

A statement with a `SystemSession` crosses organizations.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    DateTime,
    Integer,
    Text,
    Uuid,
    bindparam,
    column,
    exists,
    inspect,
    literal,
    true,
    type_coerce,
)
from sqlalchemy import cast as cast_column
from sqlalchemy import select as select_columns
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlmodel import and_, col, delete, func, or_, select, update
from sqlmodel.sql.expression import SelectOfScalar

from switchboard.foundation.audit import AuditEntry
from switchboard.foundation.database import (
    DatabaseSession,
    ReadSession,
    SystemSession,
    TenantTable,
    WriteSession,
    is_among,
    is_in_batch,
    is_not_moving,
    now,
)
from switchboard.resources.identity.models import (
    ApiKey,
    AuthenticatorApp,
    Invitation,
    Membership,
    Organization,
    Passkey,
    PasswordRequest,
    RecoveryCode,
    SupportSession,
    UsedPasskeyChallenge,
    User,
    UserSession,
)
from switchboard.resources.identity.policy import Retention

# Organizations.

_columns = inspect(Organization).local_table.c
_POLICY: Final = select(cast_column(_columns.policy, Text).label("policy")).where(
    _columns.id == bindparam("organization_id")
)


async def get_stored_policy(session: DatabaseSession, organization_id: UUID) -> str:
    """Return an organization's policy as JSON."""
    return (await session.exec(_POLICY, params={"organization_id": organization_id})).one()


async def list_all_organizations(session: SystemSession, organization_id: UUID | None = None) -> list[Organization]:
    """List all organizations, oldest first, or the one with an id."""
    rows = select(Organization).order_by(col(Organization.created_at))
    if organization_id is not None:
        rows = rows.where(col(Organization.id) == organization_id)
    return list(await session.exec(rows))


async def lock_organization_of_slug(session: SystemSession, slug: str) -> Organization | None:
    """Return the organization of a tenant file, locked; None if there is none yet."""
    rows = select(Organization).where(col(Organization.slug) == slug)
    return (await session.exec(rows.with_for_update())).one_or_none()


def is_active(table: type[TenantTable]) -> ColumnElement[bool]:
    """Return the condition that the organization of a row is not suspended."""
    owner = col(Organization.id) == col(table.organization_id)
    return ~exists().where(owner, col(Organization.suspended_at).is_not(None))


def select_audit_entries(session: ReadSession, *, actor: str = "", action: str = "") -> SelectOfScalar[AuditEntry]:
    """Select the organization's audit log; only the entries of an actor or an action if one is given."""
    rows = session.select(AuditEntry)
    rows = rows.where(col(AuditEntry.actor) == actor) if actor else rows
    return rows.where(col(AuditEntry.action) == action) if action else rows


# API keys.


async def list_api_keys(session: ReadSession) -> list[ApiKey]:
    return list(await session.exec(session.select(ApiKey)))


async def is_valid_key(session: ReadSession, key_hash: bytes) -> bool:
    """Return whether the organization has a key that was not revoked."""
    rows = session.select(ApiKey).where(col(ApiKey.key_hash) == key_hash, col(ApiKey.revoked_at).is_(None))
    return (await session.exec(rows)).first() is not None


async def find_api_key(session: SystemSession, key_hash: bytes) -> tuple[ApiKey, Organization] | None:
    """Return the API key with this hash and its organization; None for an unknown, expired, or revoked key."""
    rows = (
        select(ApiKey, Organization)
        .join(Organization, col(Organization.id) == col(ApiKey.organization_id))
        .where(col(ApiKey.key_hash) == key_hash, col(ApiKey.revoked_at).is_(None))
        .where(or_(col(ApiKey.expires_at).is_(None), col(ApiKey.expires_at) > now()))
    )
    return (await session.exec(rows)).first()


async def find_key_owner(session: SystemSession, key_id: UUID) -> UUID | None:
    """Return the id of the organization that an API key belongs to; None for an unknown key."""
    return (await session.exec(select(ApiKey.organization_id).where(col(ApiKey.id) == key_id))).one_or_none()


# Users and their memberships.


def _select_user(email: str) -> SelectOfScalar[User]:
    return select(User).where(col(User.email) == email.strip().lower())


async def find_user(session: SystemSession, email: str) -> User | None:
    """Return the user with an e-mail address, in any letter case."""
    return (await session.exec(_select_user(email))).one_or_none()


async def lock_user_by_email(session: SystemSession, email: str) -> User | None:
    """Lock and return the user with an e-mail address, in any letter case."""
    return (await session.exec(_select_user(email).with_for_update())).one_or_none()


async def delete_user(session: SystemSession, user: User) -> None:
    """Delete a user. The database deletes everything that refers to the user."""
    await session.exec(delete(User).where(col(User.id) == user.id))


async def list_organizations(session: SystemSession, user: User, *, limit: int = 500) -> list[tuple[Organization, str]]:
    """List the organizations that a user is a member of with the user's role, by name."""
    rows = select(Organization, Membership.role).join(
        Membership, col(Membership.organization_id) == col(Organization.id)
    )
    return list(
        await session.exec(rows.where(col(Membership.user_id) == user.id).order_by(Organization.name).limit(limit))
    )


async def list_memberships(session: SystemSession, user: User) -> list[tuple[UUID, str]]:
    """List the ids of the organizations that a user is a member of, each with the user's role."""
    mine = select(Membership.organization_id, Membership.role).where(col(Membership.user_id) == user.id)
    return list(await session.exec(mine))


async def insert_membership(session: SystemSession, organization_id: UUID, user_id: UUID, role: str) -> None:
    """Make a user, who may be as new, a member of an organization."""
    row = Membership(organization_id=organization_id, user_id=user_id, role=role)
    await session.exec(insert(Membership).values(row.model_dump()))


def _select_membership(user_id: UUID, organization_id: UUID) -> SelectOfScalar[Membership]:
    return select(Membership).where(
        col(Membership.user_id) == user_id, col(Membership.organization_id) == organization_id
    )


async def find_membership(session: DatabaseSession, user_id: UUID, organization_id: UUID) -> Membership | None:
    """Return a user's membership of an organization; None for an unknown organization or a user who is not a member."""
    return (await session.exec(_select_membership(user_id, organization_id))).one_or_none()


async def lock_membership_key(session: SystemSession, user_id: UUID, organization_id: UUID) -> Membership | None:
    """Return a user's membership of an organization, which nobody can delete before the transaction ends."""
    rows = _select_membership(user_id, organization_id).with_for_update(read=True, key_share=True)
    return (await session.exec(rows)).one_or_none()


@dataclass(frozen=True, slots=True)
class Member:
    """A user who belongs to the organization."""

    user_id: UUID
    email: str
    role: str


async def list_members(session: ReadSession) -> list[Member]:
    """List the organization's members by e-mail address."""
    rows = select(User.id, User.email, Membership.role).join(Membership, col(Membership.user_id) == col(User.id))
    found = await session.exec(rows.where(session.owns(Membership)).order_by(User.email))
    return [Member(user_id, email, role) for user_id, email, role in found]


async def count_owners(session: ReadSession) -> int:
    return await session.count(session.select(Membership).where(col(Membership.role) == "owner"))


# Invitations.


async def list_invitations(session: ReadSession) -> list[Invitation]:
    """List the organization's open invitations, newest first."""
    rows = session.select(Invitation).where(col(Invitation.expires_at) > now())
    return list(await session.exec(rows.order_by(col(Invitation.created_at).desc())))


async def delete_invitation(session: WriteSession, email: str) -> None:
    """Delete the organization's invitation of an e-mail address, if there is one."""
    await session.exec(delete(Invitation).where(session.owns(Invitation), col(Invitation.email) == email))


async def lock_invitation(session: SystemSession, token_hash: bytes) -> Invitation | None:
    """Lock and return the open invitation whose link has this token."""
    rows = select(Invitation).where(col(Invitation.token_hash) == token_hash, col(Invitation.expires_at) > now())
    return (await session.exec(rows.with_for_update())).one_or_none()


async def lock_invitations(session: SystemSession, email: str) -> Sequence[Invitation]:
    """Lock and return the open invitations of an e-mail address. Those of organizations that are being moved wait."""
    is_open = col(Invitation.expires_at) > now(), is_not_moving(col(Invitation.organization_id))
    rows = select(Invitation).where(col(Invitation.email) == email, *is_open)
    return (await session.exec(rows.with_for_update())).all()


# Browser sessions, and the support sessions of superadmins.

SESSION_IDLE_LIFETIME, SESSION_LIFETIME = timedelta(days=14), timedelta(days=90)
SHOWN_DAYS: Final = 30


async def find_user_session(
    session: SystemSession, token_hash: bytes
) -> tuple[UserSession, User, Organization | None, str | None] | None:
    """Return the browser session with this hash, its user, its current organization, and the user's role there.

    The role is None for a user who is not a member.
    """
    is_member = and_(
        col(Membership.user_id) == col(User.id), col(Membership.organization_id) == col(UserSession.organization_id)
    )
    rows = (
        select(UserSession, User, Organization, Membership.role)
        .join(User, col(User.id) == col(UserSession.user_id))
        .outerjoin(Organization, col(Organization.id) == col(UserSession.organization_id))
        .outerjoin(Membership, is_member)
        .where(col(UserSession.token_hash) == token_hash)
    )
    return (await session.exec(rows)).one_or_none()


async def list_user_sessions(session: SystemSession, user_id: UUID) -> list[UserSession]:
    """List a user's browser sessions, last used first."""
    mine = select(UserSession).where(
        col(UserSession.user_id) == user_id, col(UserSession.last_seen_at) > now() - SESSION_IDLE_LIFETIME
    )
    return list(await session.exec(mine.order_by(col(UserSession.last_seen_at).desc())))


async def take_password_request(session: SystemSession, request_id: UUID) -> datetime | None:
    """Delete a request for a link, and return the time of the request; None if another worker has taken it."""
    taken = delete(PasswordRequest).where(col(PasswordRequest.id) == request_id)
    return (await session.exec(taken.returning(col(PasswordRequest.created_at)))).scalar_one_or_none()


async def delete_user_sessions(
    session: SystemSession, user_id: UUID, *, only: UUID | None = None, but: UUID | None = None
) -> None:
    """Delete a user's browser sessions: one, all but one, or all."""
    ended = delete(UserSession).where(col(UserSession.user_id) == user_id)
    if only is not None:
        ended = ended.where(col(UserSession.id) == only)
    if but is not None:
        ended = ended.where(col(UserSession.id) != but)
    await session.exec(ended)


async def delete_expired_sessions(session: SystemSession) -> int:
    """Delete browser sessions that have expired, a batch at most; return how many."""
    expired = or_(
        col(UserSession.last_seen_at) < now() - SESSION_IDLE_LIFETIME,
        col(UserSession.created_at) < now() - SESSION_LIFETIME,
    )
    return (await session.exec(delete(UserSession).where(is_in_batch(UserSession, expired)))).rowcount


async def find_support_session(
    session: SystemSession, browser_session_id: UUID, organization_id: UUID
) -> SupportSession | None:
    """Return the support session by which a superadmin has entered an organization in a browser session."""
    rows = select(SupportSession).where(
        col(SupportSession.browser_session_id) == browser_session_id,
        col(SupportSession.organization_id) == organization_id,
        col(SupportSession.ended_at).is_(None),
        col(SupportSession.expires_at) > now(),
    )
    return (await session.exec(rows)).first()


async def list_support_sessions(session: ReadSession) -> list[SupportSession]:
    """List the support sessions of the last 30 days in the organization, newest first."""
    recent = session.select(SupportSession).where(col(SupportSession.created_at) > now() - timedelta(days=SHOWN_DAYS))
    return list(await session.exec(recent.order_by(col(SupportSession.created_at).desc())))


async def mark_support_sessions_ended(session: SystemSession, browser_session_id: UUID | None) -> None:
    """End the support sessions of a browser session."""
    ended = update(SupportSession).where(
        col(SupportSession.browser_session_id) == browser_session_id, col(SupportSession.ended_at).is_(None)
    )
    await session.exec(ended.values(ended_at=now()))


# Second factors and passkeys.


async def count_recovery_codes(session: SystemSession, user_id: UUID) -> int:
    """Count the recovery codes that a user has left."""
    left = select(func.count()).select_from(RecoveryCode).where(col(RecoveryCode.user_id) == user_id)
    return (await session.exec(left)).one()


async def delete_recovery_code(session: SystemSession, user_id: UUID, code_hash: bytes) -> bool:
    """Delete a recovery code of a user; return whether there was one."""
    used = delete(RecoveryCode).where(col(RecoveryCode.user_id) == user_id, col(RecoveryCode.code_hash) == code_hash)
    return (await session.exec(used)).rowcount == 1


async def delete_second_factor(session: SystemSession, user_id: UUID) -> None:
    """Delete the authenticator app and the recovery codes of a user."""
    await session.exec(delete(AuthenticatorApp).where(col(AuthenticatorApp.user_id) == user_id))
    await session.exec(delete(RecoveryCode).where(col(RecoveryCode.user_id) == user_id))


async def list_user_passkeys(session: SystemSession, user_id: UUID) -> list[Passkey]:
    """List a user's passkeys, oldest first."""
    mine = select(Passkey).where(col(Passkey.user_id) == user_id).order_by(col(Passkey.created_at))
    return list(await session.exec(mine))


def _select_passkey(credential_id: bytes) -> SelectOfScalar[Passkey]:
    return select(Passkey).where(col(Passkey.credential_id) == credential_id)


async def find_passkey(session: SystemSession, credential_id: bytes) -> Passkey | None:
    """Return the passkey with an id that its authenticator has chosen."""
    return (await session.exec(_select_passkey(credential_id))).one_or_none()


async def lock_passkey(session: SystemSession, credential_id: bytes) -> Passkey | None:
    """Lock and return the passkey with an id that its authenticator has chosen."""
    return (await session.exec(_select_passkey(credential_id).with_for_update())).one_or_none()


async def delete_passkeys(session: SystemSession, user_id: UUID, *, only: UUID | None = None) -> int:
    """Delete a user's passkeys, or one of them; return their number."""
    mine = delete(Passkey).where(col(Passkey.user_id) == user_id)
    return (await session.exec(mine if only is None else mine.where(col(Passkey.id) == only))).rowcount


async def insert_used_challenge(session: SystemSession, challenge_hash: bytes, expires_at: datetime) -> bool:
    """Record that a challenge was answered; return whether it was for the first time. Expired records are deleted."""
    await session.exec(delete(UsedPasskeyChallenge).where(col(UsedPasskeyChallenge.expires_at) < now()))
    used = {"challenge_hash": challenge_hash, "expires_at": expires_at}
    return (await session.exec(insert(UsedPasskeyChallenge).values(used).on_conflict_do_nothing())).rowcount == 1


# Rows that have outlived their organization's retention (docs/decisions/0029-retention.md).

MOMENT: Final = DateTime(timezone=True)
SETTLING_TIME: Final = timedelta(minutes=3)
"""Time after the end of a call, or after a text message, in which a process that had no database writes what it still
has, and carriers repeat their callbacks.
"""
SETTLED_BEFORE: Final = bindparam("settled_before", callable_=lambda: now() - SETTLING_TIME, type_=MOMENT)


@dataclass(frozen=True, slots=True)
class ExpiringRows:
    """Rows of a table that retention deletes: `conditions` hold for a row with nothing left to do, and `moment` is the
    column from which its days count. An index that begins with the organization and this column finds them.
    """

    table: type[TenantTable]
    conditions: tuple[ColumnElement[bool], ...] = ()
    moment: str = "created_at"

    async def find_organizations(self, session: SystemSession, cutoffs: Mapping[UUID, datetime]) -> list[UUID]:
        """Return the organizations of `cutoffs` with a row from before their moment: one probe of the index each."""
        wanted = (
            func.unnest(literal(list(cutoffs), ARRAY(Uuid())), literal(list(cutoffs.values()), ARRAY(MOMENT)))
            .table_valued(column("organization_id", Uuid()), column("cutoff", MOMENT))
            .render_derived(name="wanted")
        )
        oldest = (
            select(col(self.table.id))
            .where(col(self.table.organization_id) == wanted.c.organization_id, self._moment < wanted.c.cutoff)
            .where(*self.conditions)
            .order_by(self._moment)
            .limit(1)
            .lateral("oldest")
        )
        return list(await session.exec(select(wanted.c.organization_id).join(oldest, true())))

    def select_ids(self, session: ReadSession, cutoff: datetime, *, most: int) -> SelectOfScalar[UUID]:
        """Select the ids of the organization's oldest such rows."""
        rows = select(self.table.id).where(session.owns(self.table), self._moment < cutoff, *self.conditions)
        return rows.order_by(self._moment).limit(most)

    async def delete_oldest(self, session: WriteSession, cutoff: datetime, *, most: int) -> int:
        """Delete the organization's oldest such rows; return their number."""
        selected = self.select_ids(session, cutoff, most=most)
        rows = delete(self.table).where(session.owns(self.table), col(self.table.id).in_(selected))
        return (await session.exec(rows)).rowcount

    @property
    def _moment(self) -> ColumnElement[datetime]:
        return cast("ColumnElement[datetime]", getattr(self.table, self.moment))


async def list_retentions(session: SystemSession, buckets: Collection[int]) -> dict[UUID, Retention]:
    """Return the retention of each organization of these buckets without a legal hold, and that is not being moved."""
    kept = type_coerce(col(Organization.policy), JSONB)["retention"].label("kept")
    bucket = func.bucket(col(Organization.id), type_=Integer)
    rows = select_columns(col(Organization.id), kept).where(
        is_among(bucket, buckets), col(Organization.moving_since).is_(None)
    )
    found = {row.id: Retention.model_validate(row.kept or {}, extra="ignore") for row in await session.fetch(rows)}
    return {organization_id: retention for organization_id, retention in found.items() if not retention.legal_hold}
