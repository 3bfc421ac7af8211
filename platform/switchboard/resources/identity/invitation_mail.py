"""Inviting users by e-mail."""

from dataclasses import dataclass
from typing import Final

from switchboard.foundation.database import Database
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.members import Role, create_invitation
from switchboard.resources.identity.models import Invitation, Organization

INVITATION_PATH: Final = "/dashboard/invitations/"
PER_ORGANIZATION: Final = Limit(per_second=1 / 60, burst=50)
"""Bounds what an organization can have the operator's mail server send."""
TEXT: Final = """\
{invited_by} invites you to join {organization} at Switchboard:

{link}

The link works once, until {expires_at:%Y-%m-%d %H:%M} UTC.
"""


@dataclass(frozen=True, slots=True)
class SentInvitation:
    """An invitation with its link, which is not stored. `fault` says why the e-mail was not sent, None if it was, or if
    there is no mail server.
    """

    invitation: Invitation
    link: str
    is_sent: bool
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Inviter:
    """Creates invitations and sends them."""

    settings: Settings
    database: Database
    mailer: Mailer
    limiter: RateLimiter

    async def invite(self, principal: Principal, *, email: str, role: Role, invited_by: str) -> SentInvitation:
        """Create an invitation, and then send its link if there is a mail server: no transaction waits for it.

        Raises `IdentityError` for text that is no e-mail address.
        """
        async with self.database.tenant(principal.organization_id, actor=principal.actor) as session:
            invitation, token = await create_invitation(session, email=email, role=role)
            organization = await session.get_one(Organization, principal.organization_id)
        link = f"{self.settings.base_url}{INVITATION_PATH}{token}"
        if not self.mailer.is_set_up:
            return SentInvitation(invitation, link, is_sent=False)
        text = TEXT.format(
            invited_by=invited_by, organization=organization.name, link=link, expires_at=invitation.expires_at
        )
        try:
            await self._count(principal)
            await self.mailer.send(to=invitation.email, subject=f"Invitation to {organization.name}", text=text)
        except MailRefused as error:
            return SentInvitation(invitation, link, is_sent=False, fault=str(error))
        return SentInvitation(invitation, link, is_sent=True)

    async def _count(self, principal: Principal) -> None:
        counted = await self.limiter.check("invitation-mail", str(principal.organization_id), PER_ORGANIZATION)
        if not counted.allowed:
            raise MailRefused("this organization has just sent many invitations")
