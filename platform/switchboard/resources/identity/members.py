"""Members of an organization, and the invitations that it sends.

An invitation is a link that works once within seven days. It goes by e-mail alone; where no e-mail can be sent, it is
shown to the user who invites. Accepting a link is in `invitations.py`. An organization always keeps at least one owner.
"""

import secrets
from datetime import timedelta
from typing import Literal
from uuid import UUID

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import ReadSession, WriteSession, lock_name, now
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.paging import get_row
from switchboard.resources.identity.authentication import digest
from switchboard.resources.identity.models import Invitation, Membership
from switchboard.resources.identity.queries import count_owners, delete_invitation, find_membership
from switchboard.resources.identity.service import IdentityError, normalize_email

Role = Literal["owner", "builder", "agent", "viewer"]
"""A member's role."""
INVITATION_LIFETIME = timedelta(days=7)


async def create_invitation(
    session: WriteSession, *, email: str, role: Role, is_link_shown: bool
) -> tuple[Invitation, str]:
    """Invite an e-mail address; return the invitation and the link's token, which is not stored.

    `is_link_shown` says whether anybody besides the mailbox of that address sees the link. Replaces an earlier
    invitation of the same address. Raises `IdentityError` for text that is not an e-mail address.
    """
    address = normalize_email(email)
    await delete_invitation(session, address)
    token = secrets.token_urlsafe(32)
    invitation = Invitation(
        organization_id=session.organization_id,
        email=address,
        role=role,
        token_hash=digest(token),
        is_link_shown=is_link_shown,
        expires_at=now() + INVITATION_LIFETIME,
    )
    session.add(invitation)
    record_audit(session, AuditAction.INVITATION_CREATED, invitation.id, fields=("email", "role"))
    return invitation, token


async def replace_link(session: WriteSession, invitation_id: UUID) -> str:
    """Return the token of a new link that is shown, in place of the one that was sent. Raises `NotFound`.

    A mail server may have delivered a message that it refused: the link of the e-mail stops working, so that a link
    that was shown is never one that proves an address.
    """
    invitation = await get_row(session, Invitation, invitation_id)
    token = secrets.token_urlsafe(32)
    invitation.token_hash, invitation.is_link_shown = digest(token), True
    return token


async def withdraw_invitation(session: WriteSession, invitation_id: UUID) -> None:
    """Delete an invitation, so that its link stops working. Raises `NotFound`."""
    await session.delete(await get_row(session, Invitation, invitation_id))
    record_audit(session, AuditAction.INVITATION_WITHDRAWN, invitation_id)


async def change_member_role(session: WriteSession, user_id: UUID, role: Role) -> None:
    """Change a member's role. Raises `NotFound`, and `IdentityError` for the last owner."""
    membership = await _get_membership(session, user_id)
    if membership.role == "owner" and role != "owner":
        await _refuse_last_owner(session)
    membership.role = role
    record_audit(session, AuditAction.MEMBER_ROLE_CHANGED, user_id, fields=["role"])


async def remove_member(session: WriteSession, user_id: UUID) -> None:
    """Delete a membership; what the user did stays. Raises `NotFound`, and `IdentityError` for the last owner."""
    membership = await _get_membership(session, user_id)
    if membership.role == "owner":
        await _refuse_last_owner(session)
    await session.delete(membership)
    record_audit(session, AuditAction.MEMBER_REMOVED, user_id)


async def lock_members(session: AsyncSession, organization_id: UUID) -> None:
    """Serialize changes of an organization's members: two owners who remove each other must not both succeed.

    An advisory lock, because a lock on the organization's row would wait for tokens that are being issued.
    """
    await lock_name(session, f"members {organization_id}")


async def _get_membership(session: WriteSession, user_id: UUID) -> Membership:
    await lock_members(session, session.organization_id)
    membership = await find_membership(session, user_id, session.organization_id)
    if membership is None:
        raise NotFound
    return membership


async def _refuse_last_owner(session: ReadSession) -> None:
    if await count_owners(session) == 1:
        raise IdentityError("An organization needs an owner. Make another member an owner first.")
