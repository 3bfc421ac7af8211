"""Links with which users choose a new password without the old one.

A link is signed and stored nowhere. It is valid for an hour, and until the password changes: the signed content has a
fingerprint of the password's hash, so that a link works once. It goes to the user's mailbox, or to the operator, who
hands it to the user: its use proves the address.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import structlog

from switchboard.foundation.database import Database, SystemSession, get_bucket, new_id, now
from switchboard.foundation.jobs import Queue
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import DEFAULT_LANGUAGE, use_language
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.foundation.work import DueRows, Work
from switchboard.resources.identity.email_verification import verify_email
from switchboard.resources.identity.models import PasswordRequest, User
from switchboard.resources.identity.passwords import fingerprint
from switchboard.resources.identity.queries import delete_user_sessions, find_user, take_password_request
from switchboard.resources.identity.service import OPERATOR, IdentityError, get_user, hash_new_password

logger = structlog.get_logger()
PURPOSE: Final = "password link"
LINK_SECONDS: Final = 3600
LINK_PATH: Final = "/dashboard/new-password/"


@dataclass(frozen=True, slots=True)
class PasswordLinks:
    settings: Settings
    database: Database
    keyring: KeyRing
    mailer: Mailer
    queue: Queue

    async def request(self, email: str) -> None:
        """Have a worker send a link to a user. An unknown address costs as much, and nothing is sent."""
        async with self.database.system() as session:
            user = await find_user(session, email)
            user_id = new_id() if user is None else user.id
            session.add(PasswordRequest(user_id=user_id))
        await self.queue.wake(send_password_link.__name__, get_bucket(user_id))

    async def create(self, email: str) -> str:
        """Return a link for a user. Raises `IdentityError` for an unknown address."""
        async with self.database.system() as session:
            return self._create_link(await get_user(session, email))

    async def confirm(self, email: str, *, actor: str = OPERATOR) -> str:
        """Prove an address in the operator's name, and return a link for the user, who chooses the first password of
        the new account. Raises `IdentityError` for an unknown address, and for one that is proven.
        """
        async with self.database.system() as session:
            user = await get_user(session, email)
            if user.email_verified_at is not None:
                raise IdentityError(_("The address %(email)s is confirmed already.", email=user.email))
            return self._create_link(await verify_email(session, user, actor=actor))

    async def send(self, user_id: UUID) -> None:
        """Send a link to a user. Does nothing for an unknown user, and for one who has no password, because such users
        sign in through the operator's identity provider. Raises `MailRefused`.
        """
        async with self.database.system() as session:
            user = await session.get(User, user_id)
        if user is None or not user.password_hash:
            return
        with use_language(user.language or DEFAULT_LANGUAGE):
            asked = _(
                "Somebody, probably you, asked for a new password for %(email)s at %(base_url)s.",
                email=user.email,
                base_url=self.settings.base_url,
            )
            unasked = _("If you did not ask, do nothing: your password stays as it is.")
            parts = (asked, _("Choose it here within an hour:"), self._create_link(user), f"{unasked}\n")
            subject = _("Choose a new password")
        await self.mailer.send(to=user.email, subject=subject, text="\n\n".join(parts))

    async def find_email(self, token: str) -> str:
        """Return the e-mail address of a link's user. Raises `NotFound` for a link that does not work."""
        async with self.database.system() as session:
            return (await self._redeem(session, token)).email

    async def change_password(self, token: str, password: str) -> None:
        """Change the password, end all sessions of the user, and prove the address. Raises `NotFound` for a link that
        does not work, and `IdentityError` for a password that is too short.
        """
        await self.find_email(token)  # before the hash, which costs much
        password_hash = await hash_new_password(password)
        async with self.database.system() as session:
            user = await verify_email(session, await self._redeem(session, token))
            user.password_hash = password_hash
            await delete_user_sessions(session, user.id)

    def _create_link(self, user: User) -> str:
        token = self._tokens.sign(user.id.hex, fingerprint(user.password_hash))
        return f"{self.settings.base_url}{LINK_PATH}{token}"

    async def _redeem(self, session: SystemSession, token: str) -> User:
        """Lock and return the user of a link."""
        parts = self._tokens.read(token)
        user = await session.get(User, UUID(parts[0]), with_for_update=True) if parts else None
        if parts is None or user is None or fingerprint(user.password_hash) != parts[1]:
            raise NotFound("This link was used or has expired. Ask for a new one.")
        return user

    @property
    def _tokens(self) -> SignedTokens:
        return SignedTokens(self.keyring, PURPOSE, LINK_SECONDS)


async def send_password_link(links: PasswordLinks, *, user_id: UUID, request_id: UUID) -> None:
    """Send a link for a new password, unless it was asked for an hour ago. A message that the mail server refuses is
    logged: the user asks again.
    """
    async with links.database.system() as session:
        asked_at = await take_password_request(session, request_id)
    if asked_at is None or asked_at < now() - timedelta(seconds=LINK_SECONDS):
        return
    try:
        await links.send(user_id)
    except MailRefused as error:
        logger.error("a link for a new password was not sent", user_id=str(user_id), smtp_status=error.status)


_REQUESTS: Final = DueRows(PasswordRequest, "due_at", owner="user_id")
WORK: Final = (Work(send_password_link, _REQUESTS, seconds=2, at_once=4, owner="user_id"),)
