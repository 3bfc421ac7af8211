"""Proof that an e-mail address belongs to the user of its account (docs/decisions/0089-proven-addresses.md).

An address is an identity only once its mailbox, the identity provider, or the operator has proven it. Before that, the
account may be anybody's: an owner of any organization can invite any address and accept the invitation with a link that
was shown. Such an account belongs to that one organization.
"""

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import SystemSession, now
from switchboard.resources.identity.members import lock_members
from switchboard.resources.identity.models import User
from switchboard.resources.identity.queries import delete_user, insert_membership, list_memberships


async def verify_email(session: SystemSession, user: User, *, actor: str | None = None) -> User:
    """Return the account of an address that was just proven, by its user unless an `actor` is given. The row of `user`
    is locked.

    An account that was made without a proof is replaced: the new one has its memberships and nothing else. The database
    deletes what refers to the old one (`on delete cascade`): passkeys, authenticator app, recovery codes, sessions of
    browsers, and grants to applications. The password goes with it, and entries of the audit log from before keep the
    old id, because they are not the acts of this user.
    """
    if user.email_verified_at is not None:
        return user
    for organization_id, _ in sorted(await list_memberships(session, user)):
        await lock_members(session, organization_id)
    memberships = await list_memberships(session, user)
    proven = User(
        email=user.email,
        email_verified_at=now(),
        password_hash="",
        is_superadmin=user.is_superadmin,
        language=user.language,
    )
    await delete_user(session, user)
    session.add(proven)
    for organization_id, role in memberships:
        await insert_membership(session, organization_id, proven.id, role)
        subject = f"{user.id} to {proven.id}"
        record_audit_as(
            session, organization_id, actor or f"user:{proven.id}", AuditAction.USER_EMAIL_VERIFIED, subject
        )
    return proven
