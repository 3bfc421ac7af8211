"""Organizations, API keys, users, and their sessions."""

from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, CheckConstraint, Index, LargeBinary, Text, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import (
    TenantTable,
    document_column,
    encryption_label,
    index_due,
    json_column,
    new_id,
    now,
)
from switchboard.resources.identity.policy import Policy

APP_LABEL = "authenticator_app|sealed_secret|{user_id}"


class Organization(SQLModel, table=True):
    """A tenant. `slug` is the name of its tenant file, None without one; `policy` is the rest of that file.
    `narrowed_destinations` is what owners close besides (`NarrowedDestinations`), None for nothing.
    `suspended_at` is None unless the operator has suspended it. `moving_since` and `frozen_at` are None unless it is
    being moved to another installation (`foundation/database/moves.py`). `allows_support` is the owners' choice.
    `language` is that of users who chose none, None for their browsers'. `logo_digest` identifies the logo, if any.
    """

    __tablename__ = "organization"
    __table_args__ = (Index("ix_organization_moving", "id", postgresql_where=text("moving_since is not null")),)

    id: UUID = Field(default_factory=new_id, primary_key=True)
    name: str
    slug: str | None = Field(default=None, unique=True)
    timezone: str = "UTC"
    policy: Policy = document_column(Policy)
    narrowed_destinations: dict[str, Any] | None = json_column(None)
    setup_dismissed_at: datetime | None = None
    suspended_at: datetime | None = None
    suspension_reason: str | None = None
    allows_support: bool = True
    language: str | None = None
    logo_digest: str | None = None
    moving_since: datetime | None = None
    frozen_at: datetime | None = None
    created_at: datetime = Field(default_factory=now)


class OrganizationLogo(SQLModel, table=True):
    """The logo of an organization. It has a table of its own, because each request reads the organization."""

    __tablename__ = "organization_logo"

    organization_id: UUID = Field(primary_key=True, foreign_key="organization.id", ondelete="CASCADE")
    media_type: str
    content: bytes = Field(sa_type=LargeBinary)


class ApiKey(TenantTable, table=True):
    """An API key. Only its hash is stored; `hint` is its last four characters, to recognize it in a list."""

    __tablename__ = "api_key"
    __table_args__ = (Index(None, "organization_id", "created_at"),)

    name: str
    key_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    hint: str
    scopes: list[str] = Field(sa_type=ARRAY(Text))
    last_used_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def state(self) -> str:
        """`active`, `expired`, or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now() else "active"


class User(SQLModel, table=True):
    """A user of the dashboard. `email` is lower-case.

    `password_hash` is empty for a user who signs in only through the operator's identity provider. `email_verified_at`
    is None until somebody has proven that the address is the user's (`email_verification.py`). `language` is None for
    the organization's.
    """

    __tablename__ = "user_account"

    id: UUID = Field(default_factory=new_id, primary_key=True)
    email: str = Field(unique=True)
    email_verified_at: datetime | None = None
    password_hash: str
    is_superadmin: bool = False
    language: str | None = None
    created_at: datetime = Field(default_factory=now)


NoticeTone: TypeAlias = Literal["done", "warning", "failure"]
"""Tone of a notice: `done` confirms an action, `warning` names a loss that an action has caused, or something that
needs attention, and `failure` a request that failed.
"""


class UserSession(SQLModel, table=True):
    """A browser session of a user. Only its token's hash is stored. `notice` is shown once on the next page, in its
    `NoticeTone`.
    """

    __tablename__ = "user_session"

    id: UUID = Field(default_factory=new_id, primary_key=True)
    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    token_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    organization_id: UUID | None = Field(default=None, foreign_key="organization.id", ondelete="SET NULL")
    address: str
    user_agent: str
    notice: str | None = None
    notice_tone: str = "done"
    created_at: datetime = Field(default_factory=now)
    last_seen_at: datetime = Field(default_factory=now)


class PasswordRequest(SQLModel, table=True):
    """A request for a link for a new password, until it is sent. The user of an unknown address does not exist."""

    __tablename__ = "password_request"
    __table_args__ = (index_due("ix_password_request_due", "due_at", owner="user_id"),)

    id: UUID = Field(default_factory=new_id, primary_key=True)
    user_id: UUID
    created_at: datetime = Field(default_factory=now)
    due_at: datetime = Field(default_factory=now)


class SupportSession(TenantTable, table=True):
    """A superadmin's access to an organization for support, in one browser session, until `expires_at`."""

    __tablename__ = "support_session"
    __table_args__ = (Index(None, "organization_id", "created_at"),)

    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    user_email: str
    browser_session_id: UUID | None = Field(foreign_key="user_session.id", ondelete="SET NULL", index=True)
    reason: str
    expires_at: datetime
    ended_at: datetime | None = None

    @property
    def is_active(self) -> bool:
        """True until it expires, somebody ends it, or the superadmin signs out."""
        return self.ended_at is None and self.expires_at > now() and self.browser_session_id is not None


class AuthenticatorApp(SQLModel, table=True):
    """The authenticator app of a user. `last_step` is the time step of the last code that was used."""

    __tablename__ = "authenticator_app"

    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", primary_key=True)
    sealed_secret: str = Field(sa_column_kwargs=encryption_label(APP_LABEL))
    last_step: int = Field(sa_type=BigInteger)
    created_at: datetime = Field(default_factory=now)


class RecoveryCode(SQLModel, table=True):
    """A code that works once in place of a user's authenticator app. Only its hash is stored."""

    __tablename__ = "recovery_code"

    code_hash: bytes = Field(sa_type=LargeBinary, primary_key=True)
    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)


class Passkey(SQLModel, table=True):
    """A passkey of a user (WebAuthn). `sign_count` is the authenticator's counter at its last use; 0 for one that does
    not count.
    """

    __tablename__ = "passkey"

    id: UUID = Field(default_factory=new_id, primary_key=True)
    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    name: str
    credential_id: bytes = Field(sa_type=LargeBinary, unique=True)
    public_key: bytes = Field(sa_type=LargeBinary)
    sign_count: int = Field(sa_type=BigInteger)
    created_at: datetime = Field(default_factory=now)
    last_used_at: datetime | None = None


class UsedPasskeyChallenge(SQLModel, table=True):
    """A challenge that was answered, so that it is not accepted again. Kept until the challenge expires."""

    __tablename__ = "used_passkey_challenge"

    challenge_hash: bytes = Field(sa_type=LargeBinary, primary_key=True)
    expires_at: datetime = Field(index=True)


class Membership(TenantTable, table=True):
    """A user's role in an organization."""

    __tablename__ = "membership"
    __table_args__ = (
        UniqueConstraint("organization_id", "user_id"),
        CheckConstraint("role in ('owner', 'builder', 'agent', 'viewer')", name="role"),
    )

    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    role: str = "builder"


class Invitation(TenantTable, table=True):
    """A link that makes the user who opens it a member. Only the hash of its token is stored; it works once, until
    it expires. `is_link_shown` is false for a link that only the e-mail to `email` contains.
    """

    __tablename__ = "invitation"
    __table_args__ = (
        UniqueConstraint("organization_id", "email"),
        CheckConstraint("role in ('owner', 'builder', 'agent', 'viewer')", name="role"),
    )

    email: str
    role: str
    token_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    is_link_shown: bool = True
    expires_at: datetime
