"""Second factors of users who sign in with a password: codes of an authenticator app (TOTP, RFC 6238), and recovery
codes for users who have lost it.

A sign-in with the right password goes on with a proof, a signed text that the browser sends back together with the
code.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import pyotp

from switchboard.foundation.database import Database, SystemSession, now
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.web.signed_links import SignedTokens
from switchboard.resources.identity import queries
from switchboard.resources.identity.authentication import digest
from switchboard.resources.identity.models import APP_LABEL, AuthenticatorApp, RecoveryCode, User
from switchboard.resources.identity.passwords import fingerprint
from switchboard.resources.identity.service import IdentityError, get_user, lock_user

ISSUER: Final = "Switchboard"
PURPOSE: Final = "second factor"
PROOF_SECONDS: Final = 600
STEP_SECONDS: Final = 30
RECOVERY_CODES: Final = 10
SECRET: Final = re.compile("[A-Z2-7]{32}")
ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without characters that look like others."""
WRONG_CODE: Final = "This code is wrong, or was used already."


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """A user's second factor: since when, and how many recovery codes are left."""

    created_at: datetime
    recovery_codes: int


@dataclass(frozen=True, slots=True)
class SecondFactors:
    database: Database
    keyring: KeyRing

    async def find(self, user_id: UUID) -> SecondFactor | None:
        """Return a user's second factor, None if there is none."""
        async with self.database.system() as session:
            app = await session.get(AuthenticatorApp, user_id)
            if app is None:
                return None
            return SecondFactor(app.created_at, await queries.count_recovery_codes(session, user_id))

    def begin(self, user: User, secret: str = "") -> tuple[str, str]:
        """Return the secret that an authenticator app is to keep, a new one or the one that was shown before, and its
        `otpauth://` address for a QR code. Nothing is stored yet.
        """
        secret = secret if SECRET.fullmatch(secret) else pyotp.random_base32()
        return secret, pyotp.TOTP(secret).provisioning_uri(name=user.email, issuer_name=ISSUER)

    async def add(self, user: User, secret: str, code: str) -> list[str]:
        """Store an app whose code is right, and return new recovery codes, which are not stored as they are.

        Raises `IdentityError` for a wrong code, if the user has an app already, and if the account has changed since
        the password was given.
        """
        step = _find_step(secret, code, after=0) if SECRET.fullmatch(secret) else None
        if step is None:
            raise IdentityError(WRONG_CODE)
        recovery_codes = [
            "-".join("".join(secrets.choice(ALPHABET) for _ in range(4)) for _ in range(4))
            for _ in range(RECOVERY_CODES)
        ]
        async with self.database.system() as session:
            await lock_user(session, user)
            if await session.get(AuthenticatorApp, user.id) is not None:
                raise IdentityError("There is an authenticator app already.")
            sealed = self.keyring.encrypt(secret, APP_LABEL.format(user_id=user.id))
            session.add(AuthenticatorApp(user_id=user.id, sealed_secret=sealed, last_step=step, created_at=now()))
            session.add_all([RecoveryCode(user_id=user.id, code_hash=digest(_clean(one))) for one in recovery_codes])
        return recovery_codes

    async def remove(self, user_id: UUID, code: str) -> None:
        """Delete a user's app and recovery codes. Raises `IdentityError` for a wrong code."""
        async with self.database.system() as session:
            await self._redeem(session, user_id, code)
            await queries.delete_second_factor(session, user_id)

    async def reset(self, email: str) -> None:
        """Delete a user's lost second factor and passkeys. Raises `IdentityError` for an unknown address."""
        async with self.database.system() as session:
            user = await get_user(session, email)
            await queries.delete_second_factor(session, user.id)
            await queries.delete_passkeys(session, user.id)

    def prove_password(self, user: User) -> str:
        """Return the proof that somebody knows a user's password."""
        return self._tokens.sign(user.id.hex, fingerprint(user.password_hash))

    async def read_proof(self, proof: str) -> User:
        """Return the user of a proof. Raises `IdentityError` for one that is forged, older than ten minutes, or of a
        password that has changed.
        """
        parts = self._tokens.read(proof)
        async with self.database.system() as session:
            user = await session.get(User, UUID(parts[0])) if parts else None
        if parts is None or user is None or fingerprint(user.password_hash) != parts[1]:
            raise IdentityError("This sign-in has expired. Start again.")
        return user

    async def check(self, user_id: UUID, code: str) -> None:
        """Redeem a code of the app, or a recovery code. Raises `IdentityError` for a wrong one."""
        async with self.database.system() as session:
            await self._redeem(session, user_id, code)

    async def _redeem(self, session: SystemSession, user_id: UUID, code: str) -> None:
        app = await session.get(AuthenticatorApp, user_id, with_for_update=True)
        if app is None:
            raise IdentityError(WRONG_CODE)
        secret = self.keyring.decrypt(app.sealed_secret, APP_LABEL.format(user_id=user_id))
        step = _find_step(secret, code, after=app.last_step)
        if step is not None:
            app.last_step = step
            return
        if not await queries.delete_recovery_code(session, user_id, digest(_clean(code))):
            raise IdentityError(WRONG_CODE)

    @property
    def _tokens(self) -> SignedTokens:
        return SignedTokens(self.keyring, PURPOSE, PROOF_SECONDS)


def _find_step(secret: str, code: str, *, after: int) -> int | None:
    """Return the time step of a code of now or of half a minute before or after; None for one that does not fit, or is
    not later than the last one that was used (RFC 6238, section 5.2).
    """
    app, current = pyotp.TOTP(secret), int(now().timestamp()) // STEP_SECONDS
    digits = _clean(code)
    return next(
        (
            step
            for step in (current - 1, current, current + 1)
            if step > after and secrets.compare_digest(app.at(step * STEP_SECONDS).encode(), digits.encode())
        ),
        None,
    )


def _clean(code: str) -> str:
    return re.sub(r"[\s-]", "", code).lower()
