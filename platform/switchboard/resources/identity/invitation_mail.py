"""Inviting users by e-mail.

A link that only the e-mail contains proves the address of the user who opens it, so it is shown to nobody else.
"""

from dataclasses import dataclass
from typing import Final

from switchboard.foundation.database import Database
from switchboard.foundation.languages import DEFAULT_LANGUAGE, use_language
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity import sign_in
from switchboard.resources.identity.members import Role, create_invitation, replace_link
from switchboard.resources.identity.models import Invitation, Organization

INVITATION_PATH: Final = "/dashboard/invitations/"
PER_ORGANIZATION: Final = Limit(per_second=1 / 60, burst=50)
"""Bounds what an organization can have the operator's mail server send."""


@dataclass(frozen=True, slots=True)
class SentInvitation:
    """An invitation. `link` is the link to pass on, None if it went by e-mail. `fault` says why the e-mail was not
    sent, None if it was, or if there is no mail server.
    """

    invitation: Invitation
    link: str | None = None
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

        Raises `IdentityError` for text that is not an e-mail address.
        """
        async with self.database.tenant(principal.organization_id, actor=principal.actor) as session:
            shown = not self.mailer.is_set_up
            invitation, token = await create_invitation(session, email=email, role=role, is_link_shown=shown)
            organization = await session.get_one(Organization, principal.organization_id)
        if shown:
            return SentInvitation(invitation, self._create_link(token))
        recipient = await sign_in.find_language(self.database, invitation.email)
        with use_language(recipient or organization.language or DEFAULT_LANGUAGE):
            subject = _("Invitation to %(organization)s", organization=organization.name)
            text = _write_text(invitation, organization.name, self._create_link(token), invited_by)
        try:
            await self._count(principal)
            await self.mailer.send(to=invitation.email, subject=subject, text=text)
        except MailRefused as error:
            async with self.database.tenant(principal.organization_id, actor=principal.actor) as session:
                token = await replace_link(session, invitation.id)
            return SentInvitation(invitation, self._create_link(token), fault=str(error))
        return SentInvitation(invitation)

    def _create_link(self, token: str) -> str:
        return f"{self.settings.base_url}{INVITATION_PATH}{token}"

    async def _count(self, principal: Principal) -> None:
        counted = await self.limiter.check("invitation-mail", str(principal.organization_id), PER_ORGANIZATION)
        if not counted.allowed:
            raise MailRefused("this organization has just sent many invitations")


def _write_text(invitation: Invitation, organization: str, link: str, invited_by: str) -> str:
    return "\n\n".join(
        (
            _(
                "%(invited_by)s invites you to join %(organization)s at Switchboard:",
                invited_by=invited_by,
                organization=organization,
            ),
            link,
            _("The link works once, until %(time)s UTC.", time=f"{invitation.expires_at:%Y-%m-%d %H:%M}") + "\n",
        )
    )
