"""Grants, codes, and token families, stored as hashes. Synchronous, for Authlib.

A grant's row is the lock of its code and tokens. A code works once; a second use revokes what it gave. A refresh token
works once; a second use more than ten seconds later revokes its family, because the token was stolen. Within ten
seconds it counts as the retry of a client that got no response.
"""

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import now
from switchboard.resources.identity.authentication import ACCESS_TOKEN, REFRESH_TOKEN, digest, new_credential
from switchboard.resources.oauth import queries
from switchboard.resources.oauth.models import OAuthClient, OAuthGrant, OAuthToken

logger = structlog.get_logger()
CODE_LIFETIME = timedelta(minutes=10)
ACCESS_LIFETIME = timedelta(hours=1)
REFRESH_LIFETIME = timedelta(days=30)
GRACE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Approval:
    """A user's approval of a request in an organization.

    A user cannot grant scopes that their `role` does not have.
    """

    user_id: UUID
    organization_id: UUID
    membership_id: UUID
    role: str


class TokenFamilies:
    """Grants within one system transaction. `ended` lists the grants that were revoked, to notify other processes
    after the commit.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.ended: list[UUID] = []

    def begin(
        self,
        approval: Approval,
        client: OAuthClient,
        code: str,
        *,
        redirect_uri: str,
        scopes: list[str],
        challenge: str | None,
    ) -> None:
        """Store a grant and its code."""
        self.session.add(
            OAuthGrant(
                organization_id=approval.organization_id,
                client_id=client.id,
                user_id=approval.user_id,
                membership_id=approval.membership_id,
                scopes=scopes,
                redirect_uri=redirect_uri,
                code_hash=digest(code),
                code_challenge=challenge,
                expires_at=now() + CODE_LIFETIME,
            )
        )
        actor, subject = f"user:{approval.user_id}", f"{client.client_id} {' '.join(scopes)}"
        created = AuditAction.OAUTH_GRANT_CREATED
        record_audit_as(self.session, approval.organization_id, actor, created, subject)

    def redeemable_grant_of_code(self, code: str, client: OAuthClient) -> OAuthGrant | None:
        """Return the grant of a code that this client may redeem now, locked. A code's second use revokes its grant."""
        grant = queries.lock_grant_by_code(self.session, digest(code), client)
        if grant is None:
            return None
        if grant.redeemed_at is not None:
            self.end(grant, actor="system", reason=f"{client.client_id} reused its code")
            return None
        return grant if self._is_live(grant) else None

    def find_by_refresh_token(self, text: str, client: OAuthClient) -> tuple[OAuthGrant, OAuthToken] | None:
        """Return the grant, locked, and the token pair of a refresh token that this client may use now. A second use
        revokes the family.
        """
        found = queries.lock_refresh_token(self.session, digest(text), client)
        if found is None:
            return None
        grant, token = found
        if token is not None and token.used_at is not None and token.used_at < now() - GRACE:
            self.end(grant, actor="system", reason=f"{client.client_id} reused a refresh token")
        if token is None or token.used_at is not None or token.expires_at <= now() or not self._is_live(grant):
            return None
        return grant, token

    def issue(self, grant: OAuthGrant, scopes: list[str]) -> tuple[str, str]:
        """Issue an access token and a refresh token; the family lives as long as its newest refresh token."""
        access_token, refresh_token = new_credential(ACCESS_TOKEN), new_credential(REFRESH_TOKEN)
        grant.expires_at = now() + REFRESH_LIFETIME
        self.session.add(
            OAuthToken(
                organization_id=grant.organization_id,
                grant_id=grant.id,
                scopes=scopes,
                access_hash=digest(access_token),
                access_expires_at=now() + ACCESS_LIFETIME,
                refresh_hash=digest(refresh_token),
                expires_at=grant.expires_at,
            )
        )
        return access_token, refresh_token

    def end(self, grant: OAuthGrant, *, actor: str, reason: str) -> None:
        """Revoke a grant with all its tokens; harmless when repeated."""
        if grant.revoked_at is not None:
            return
        grant.revoked_at = now()
        record_audit_as(self.session, grant.organization_id, actor, AuditAction.OAUTH_GRANT_REVOKED, reason)
        self.ended.append(grant.id)
        logger.warning(
            "an application's access was revoked",
            organization_id=str(grant.organization_id),
            actor=actor,
            reason=reason,
        )

    def _is_live(self, grant: OAuthGrant) -> bool:
        return grant.revoked_at is None and grant.expires_at > now()
