"""Passkeys: signing in without a password, by Web Authentication (https://www.w3.org/TR/webauthn-3/).

The browser answers a challenge with a key that its authenticator keeps. The authenticator must have verified the user,
by a fingerprint or a PIN, so that a passkey counts as both factors. A challenge is signed, and stored only when it is
answered. It belongs to one holder: a browser that signs in, or a session that adds a passkey. It lasts five minutes,
and is accepted once.
"""

import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import webauthn
from pydantic import JsonValue
from webauthn.helpers import generate_challenge, parse_authentication_credential_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from switchboard.foundation.database import Database, now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.resources.identity import queries
from switchboard.resources.identity.authentication import digest
from switchboard.resources.identity.models import Passkey, User
from switchboard.resources.identity.service import IdentityError, lock_user

PURPOSE: Final = "passkey challenge"
CHALLENGE_SECONDS: Final = 300
KEPT: Final = timedelta(seconds=2 * CHALLENGE_SECONDS)
"""Twice the lifetime of a challenge: the clock of another server may be behind."""
MAX_PASSKEYS: Final = 20
REQUIRED: Final = UserVerificationRequirement.REQUIRED
REFUSED: Final = "This passkey was not accepted. Try again, or sign in with your password."
"""For each answer that is not valid: it does not tell why, as that of a wrong password."""


@dataclass(frozen=True, slots=True)
class PasskeyRequest:
    """Options of a call of `navigator.credentials`, and the state that comes back with the browser's answer."""

    options: JsonValue
    state: str


@dataclass(frozen=True, slots=True)
class Passkeys:
    settings: Settings
    database: Database
    keyring: KeyRing

    @property
    def fault(self) -> str:
        """The reason for which this installation can have no passkeys; empty if it can."""
        if can_have_passkeys(self.settings.base_url):
            return ""
        return _(
            "Passkeys need an address with https and a host name, or http://localhost; this installation's is "
            "%(base_url)s. Whoever runs it sets it with SWITCHBOARD_PUBLIC_URL.",
            base_url=self.settings.base_url,
        )

    async def list_passkeys(self, user_id: UUID) -> list[Passkey]:
        """List a user's passkeys, oldest first."""
        async with self.database.system() as session:
            return await queries.list_user_passkeys(session, user_id)

    async def begin_registration(self, user: User, session_id: UUID) -> PasskeyRequest:
        """Return the request for a new passkey of a user. Raises `NotFound` where there can be none."""
        self._require_address()
        known = [PublicKeyCredentialDescriptor(row.credential_id) for row in await self.list_passkeys(user.id)]
        challenge = generate_challenge()
        options = webauthn.generate_registration_options(
            rp_id=self._host,
            rp_name="Switchboard",
            user_id=user.id.bytes,
            user_name=user.email,
            challenge=challenge,
            timeout=CHALLENGE_SECONDS * 1000,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED, require_resident_key=True, user_verification=REQUIRED
            ),
            exclude_credentials=known,
        )
        return PasskeyRequest(json.loads(webauthn.options_to_json(options)), self._seal(challenge, str(session_id)))

    async def add(self, user: User, session_id: UUID, *, name: str, credential: str, state: str) -> Passkey:
        """Store the passkey that a browser has created. Raises `IdentityError` for an answer that is not valid, for a
        user who has too many, and if the account has changed since the password was given.
        """
        challenge = await self._redeem(state, str(session_id))
        with _refuse_invalid():
            verified = webauthn.verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self._host,
                expected_origin=self.settings.base_url,
                require_user_verification=True,
            )
        passkey = Passkey(
            user_id=user.id,
            name=name,
            credential_id=verified.credential_id,
            public_key=verified.credential_public_key,
            sign_count=verified.sign_count,
        )
        async with self.database.system() as session:
            await lock_user(session, user)
            if len(await queries.list_user_passkeys(session, user.id)) >= MAX_PASSKEYS:
                raise IdentityError(f"You have {MAX_PASSKEYS} passkeys already. Remove one first.")
            if await queries.find_passkey(session, passkey.credential_id) is not None:
                raise IdentityError("This passkey was added already.")
            session.add(passkey)
        return passkey

    async def remove(self, user_id: UUID, passkey_id: UUID) -> None:
        """Delete a passkey of a user. Raises `NotFound`."""
        async with self.database.system() as session:
            if await queries.delete_passkeys(session, user_id, only=passkey_id) != 1:
                raise NotFound

    def begin_sign_in(self, browser: str) -> PasskeyRequest:
        """Return the request for any passkey of this installation. Raises `NotFound` where there can be none."""
        self._require_address()
        challenge = generate_challenge()
        options = webauthn.generate_authentication_options(
            rp_id=self._host, challenge=challenge, timeout=CHALLENGE_SECONDS * 1000, user_verification=REQUIRED
        )
        return PasskeyRequest(json.loads(webauthn.options_to_json(options)), self._seal(challenge, browser))

    async def verify_sign_in(self, browser: str, *, credential: str, state: str) -> User:
        """Return the user whose passkey has answered the challenge. Raises `IdentityError`.

        A counter that has not grown since the last use is refused: it may be that of a copy (section 6.1.1).
        """
        challenge = await self._redeem(state, browser)
        with _refuse_invalid():
            answer = parse_authentication_credential_json(credential)
        async with self.database.system() as session:
            passkey = await queries.lock_passkey(session, answer.raw_id)
            if passkey is None or answer.response.user_handle != passkey.user_id.bytes:
                raise IdentityError(REFUSED)
            with _refuse_invalid():
                verified = webauthn.verify_authentication_response(
                    credential=answer,
                    expected_challenge=challenge,
                    expected_rp_id=self._host,
                    expected_origin=self.settings.base_url,
                    credential_public_key=passkey.public_key,
                    credential_current_sign_count=passkey.sign_count,
                    require_user_verification=True,
                )
            passkey.sign_count, passkey.last_used_at = verified.new_sign_count, now()
            return await session.get_one(User, passkey.user_id)

    def _require_address(self) -> None:
        if self.fault:
            raise NotFound(self.fault)

    def _seal(self, challenge: bytes, holder: str) -> str:
        return self._tokens.sign(challenge.hex(), digest(holder).hex())

    async def _redeem(self, state: str, holder: str) -> bytes:
        """Return the challenge of a state, once. Raises `IdentityError` for one that is old, used, or another's."""
        expired = IdentityError("This request for a passkey was used or has expired. Try again.")
        challenge, owner = self._tokens.read(state) or ("", "")
        if not hmac.compare_digest(owner, digest(holder).hex()):
            raise expired
        async with self.database.system() as session:
            if not await queries.insert_used_challenge(session, digest(challenge), now() + KEPT):
                raise expired
        return bytes.fromhex(challenge)

    @property
    def _host(self) -> str:
        """The relying party's id."""
        return urlsplit(self.settings.base_url).hostname or ""

    @property
    def _tokens(self) -> SignedTokens:
        return SignedTokens(self.keyring, PURPOSE, CHALLENGE_SECONDS)


@contextmanager
def _refuse_invalid() -> Iterator[None]:
    try:
        yield
    except WebAuthnException:
        raise IdentityError(REFUSED) from None


def can_have_passkeys(base_url: str) -> bool:
    """Return whether browsers allow passkeys at an address: a host name over HTTPS, or localhost."""
    address = urlsplit(base_url)
    host = address.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return address.scheme == "https"
    return False
