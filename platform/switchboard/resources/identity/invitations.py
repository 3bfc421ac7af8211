"""Inviting users by e-mail, and accepting invitations.

A link that only the e-mail contains proves the address of the user who opens it, so it is shown to nobody else. A link
names no organization, so transactions that accept one cross organizations until the membership is made.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit_as
from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.languages import DEFAULT_LANGUAGE, use_language
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound, OrganizationMoving
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.resources.identity import queries, sign_in
from switchboard.resources.identity.authentication import digest
from switchboard.resources.identity.email_verification import verify_email
from switchboard.resources.identity.members import Role, create_invitation, replace_link
from switchboard.resources.identity.models import Invitation, Membership, Organization, User
from switchboard.resources.identity.service import IdentityError, hash_new_password, normalize_email

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
    settings: Settings
    database: Database
    mailer: Mailer
    limiter: RateLimiter

    async def invite(self, principal: Principal, *, email: str, role: Role, invited_by: str) -> SentInvitation:
        """Create an invitation, and then send its link if there is a mail server: no transaction waits for it.

        Raises `IdentityError` for text that is not an e-mail address.
        """
        async with self.database.write(principal.organization_id, actor=principal.actor) as session:
            shown = not self.mailer.is_set_up
            invitation, token = await create_invitation(session, email=email, role=role, is_link_shown=shown)
            organization = await session.get_one(Organization, principal.organization_id)
        if shown:
            return SentInvitation(invitation, self._create_link(token))
        recipient = await sign_in.find_language(self.database, invitation.email)
        with use_language(recipient or organization.language or DEFAULT_LANGUAGE):
            subject = _("Invitation to %(organization)s", organization=organization.name)
            invites = _(
                "%(invited_by)s invites you to join %(organization)s at Switchboard:",
                invited_by=invited_by,
                organization=organization.name,
            )
            expires = _("The link works once, until %(time)s UTC.", time=f"{invitation.expires_at:%Y-%m-%d %H:%M}")
            text = "\n\n".join((invites, self._create_link(token), f"{expires}\n"))
        try:
            sent = await self.limiter.check("invitation-mail", str(principal.organization_id), PER_ORGANIZATION)
            if not sent.allowed:
                raise MailRefused("this organization has just sent many invitations")
            await self.mailer.send(to=invitation.email, subject=subject, text=text)
        except MailRefused as error:
            async with self.database.write(principal.organization_id, actor=principal.actor) as session:
                token = await replace_link(session, invitation.id)
            return SentInvitation(invitation, self._create_link(token), fault=str(error))
        return SentInvitation(invitation)

    def _create_link(self, token: str) -> str:
        return f"{self.settings.base_url}{INVITATION_PATH}{token}"


class Admission(Enum):
    """Ways in which an invited address joins: with a new account, whose password the form asks for; with the account
    that it has; or not, because its account is unproven and belongs to another organization.
    """

    NEW_ACCOUNT = auto()
    OWN_ACCOUNT = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of an invitation to the user who opens its link. `user_id` is that of the address's account, if any."""

    organization: Organization
    email: str
    role: str
    admission: Admission
    user_id: UUID | None

    @property
    def refusal(self) -> str:
        """The reason for `Admission.REFUSED`, and the ways out."""
        return _(
            "Nobody has confirmed the address %(email)s, so its account belongs to one organization only. Confirm it "
            "by choosing a new password at “Forgot your password?” on the sign-in page, or ask whoever runs this "
            "installation to confirm it. Then open this link again.",
            email=self.email,
        )


async def get_offer(database: Database, token: str) -> Offer:
    """Return what a link offers. Raises `NotFound` for one that was used, was withdrawn, or has expired."""
    async with database.system() as session:
        invitation = await _find_invitation(session, token)
        organization = await session.get_one(Organization, invitation.organization_id)
        user = await queries.find_user(session, invitation.email)
        admission = await _admit(session, invitation, user)
        return Offer(organization, invitation.email, invitation.role, admission, user.id if user else None)


async def accept_invitation(database: Database, token: str, *, password: str = "", as_user: UUID | None = None) -> User:
    """Accept an invitation as a signed-in user, or with a password for a new account; return the user.

    The account is new, too, if the address had an unproven one that the link replaces. Raises `NotFound` for a link
    that no longer works, and `IdentityError` for a password that is too short, for an account with another e-mail
    address than the invited one, and for an unproven one of another organization.
    """
    offer = await get_offer(database, token)
    if as_user not in (None, offer.user_id):
        raise IdentityError(_("This invitation is for %(email)s. Sign out to accept it.", email=offer.email))
    if offer.admission is Admission.REFUSED:
        raise IdentityError(offer.refusal)
    if offer.admission is Admission.OWN_ACCOUNT and as_user is None:
        raise IdentityError(_("Sign in as %(email)s to accept this invitation.", email=offer.email))
    password_hash = await hash_new_password(password) if offer.admission is Admission.NEW_ACCOUNT else ""
    async with database.system() as session:
        invitation = await _find_invitation(session, token)
        user = await queries.lock_user_by_email(session, invitation.email)
        if (await _admit(session, invitation, user), user.id if user else None) != (offer.admission, offer.user_id):
            raise IdentityError(_("The account of this address has just changed. Open the link again."))
        if user is None or offer.admission is Admission.NEW_ACCOUNT:
            user = await _renew_account(session, user, invitation, password_hash)
        await _join(session, user, invitation)
        return user


async def find_or_create_invited_user(database: Database, email: str) -> User:
    """Return the user with an e-mail address that an identity provider has verified, and accept the user's open
    invitations. The claim proves the address.

    A new user needs an invitation. Raises `IdentityError` for an address that has neither.
    """
    address = normalize_email(email)
    async with database.system() as session:
        user = await queries.lock_user_by_email(session, address)
        invitations = await queries.lock_invitations(session, address)
        if user is None and not invitations:
            raise IdentityError(f"{address} belongs to no organization here. Ask an owner to invite you.")
        if user is None:
            user = User(email=address, email_verified_at=now(), password_hash="")
            session.add(user)
        user = await verify_email(session, user)
        for invitation in invitations:
            await _join(session, user, invitation)
        return user


async def _find_invitation(session: SystemSession, token: str) -> Invitation:
    invitation = await queries.lock_invitation(session, digest(token))
    if invitation is None:
        raise NotFound("This invitation was used, was withdrawn, or has expired. Ask for a new one.")
    if (await session.get_one(Organization, invitation.organization_id)).moving_since is not None:
        raise OrganizationMoving
    return invitation


async def _admit(session: SystemSession, invitation: Invitation, user: User | None) -> Admission:
    if user is None:
        return Admission.NEW_ACCOUNT
    if user.email_verified_at is not None:
        return Admission.OWN_ACCOUNT
    if not invitation.is_link_shown:
        return Admission.NEW_ACCOUNT
    organizations = {organization_id for organization_id, _role in await queries.list_memberships(session, user)}
    if not organizations:
        return Admission.NEW_ACCOUNT
    return Admission.OWN_ACCOUNT if organizations == {invitation.organization_id} else Admission.REFUSED


async def _renew_account(session: SystemSession, user: User | None, invitation: Invitation, password_hash: str) -> User:
    """Create the account of an invited address, in the place of an unproven one if there is one.

    A link that was shown replaces only an account without an organization: what was enrolled in it is as unproven as
    the new one.
    """
    if user is not None and not invitation.is_link_shown:
        proven = await verify_email(session, user)
        proven.password_hash = password_hash
        return proven
    if user is not None:
        await queries.delete_user(session, user)
    verified_at = None if invitation.is_link_shown else now()
    created = User(email=invitation.email, email_verified_at=verified_at, password_hash=password_hash)
    session.add(created)
    return created


async def _join(session: SystemSession, user: User, invitation: Invitation) -> None:
    organization_id = invitation.organization_id
    if await queries.find_membership(session, user.id, organization_id) is None:
        session.add(Membership(organization_id=organization_id, user_id=user.id, role=invitation.role))
        record_audit_as(session, organization_id, f"user:{user.id}", AuditAction.MEMBER_JOINED, user.id)
    await session.delete(invitation)
