"""Tables of applications, grants, and tokens."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ARRAY, Index, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from switchboard.foundation.database import TenantTable, new_id, now, refer_to


class OAuthClient(SQLModel, table=True):
    """An application that may ask users for access. A public one has no secret, because it runs where none can be
    kept, and must use PKCE.
    """

    __tablename__ = "oauth_client"

    id: UUID = Field(default_factory=new_id, primary_key=True)
    client_id: str = Field(unique=True)
    secret_hash: bytes | None = Field(default=None, sa_type=LargeBinary)
    name: str
    redirect_uris: list[str] = Field(sa_type=ARRAY(Text))
    created_at: datetime = Field(default_factory=now)


class OAuthGrant(TenantTable, table=True):
    """A user's grant to an application: its authorization code and, once redeemed, its token family. Its row is the
    lock of all of them.

    `membership_id` is the user's membership, which takes the grant with it. `expires_at` is when nothing of it can be
    used any more: first the code, then the newest refresh token.
    """

    __tablename__ = "oauth_grant"
    __table_args__ = (
        UniqueConstraint("organization_id", "id"),
        Index(None, "organization_id", "client_id", "user_id"),
    )

    client_id: UUID = Field(foreign_key="oauth_client.id", ondelete="CASCADE", index=True)
    user_id: UUID = Field(foreign_key="user_account.id", ondelete="CASCADE", index=True)
    membership_id: UUID = Field(foreign_key="membership.id", ondelete="CASCADE", index=True)
    scopes: list[str] = Field(sa_type=ARRAY(Text))
    redirect_uri: str
    code_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    code_challenge: str | None = None
    redeemed_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    expires_at: datetime = Field(index=True)


class OAuthToken(TenantTable, table=True):
    """An access token with its refresh token. `expires_at` is the refresh token's end; `used_at` is the time of its
    only use.
    """

    __tablename__ = "oauth_token"
    __table_args__ = (
        refer_to("oauth_grant", "grant_id"),
        Index(None, "organization_id", "grant_id"),
    )

    grant_id: UUID
    scopes: list[str] = Field(sa_type=ARRAY(Text))
    access_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    access_expires_at: datetime
    refresh_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    used_at: datetime | None = None
    expires_at: datetime = Field(index=True)
