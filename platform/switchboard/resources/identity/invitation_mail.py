"""The e-mail of an invitation."""

from dataclasses import dataclass
from typing import Final

from switchboard.foundation.database import TenantSession
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.web.principal import Limit
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity.models import Invitation, Organization

PER_ORGANIZATION: Final = Limit(per_second=1 / 60, burst=50)
"""The operator's mail server must not send what an organization likes to anybody in the world."""
TEXT: Final = """\
{invited_by} invites you to join {organization} at Switchboard:

{link}

The link works once, until {expires_at:%Y-%m-%d %H:%M} UTC.
"""


@dataclass(frozen=True, slots=True)
class InvitationMail:
    """Sends invitations."""

    mailer: Mailer
    limiter: RateLimiter

    async def send(self, session: TenantSession, invitation: Invitation, link: str, *, invited_by: str) -> bool:
        """Send the link of an invitation; return False if there is no mail server. Raises `MailRefused`."""
        if not self.mailer.is_set_up:
            return False
        counted = await self.limiter.check("invitation-mail", str(session.organization_id), PER_ORGANIZATION)
        if not counted.allowed:
            raise MailRefused("this organization has sent many invitations a moment ago")
        organization = await session.get_one(Organization, session.organization_id)
        text = TEXT.format(
            invited_by=invited_by, organization=organization.name, link=link, expires_at=invitation.expires_at
        )
        await self.mailer.send(to=invitation.email, subject=f"Invitation to {organization.name}", text=text)
        return True
