"""Single sign-on through the operator's identity provider: the OpenID Connect authorization code flow with PKCE and
nonce, by Authlib's client.

The provider identifies a user by a verified e-mail address. Authorization stays with Switchboard: a user without an
invitation gets no account.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client import BaseApp
from authlib.integrations.base_client.async_app import AsyncOAuth2Mixin
from authlib.integrations.base_client.async_openid import AsyncOpenIDMixin
from authlib.integrations.httpx_client import AsyncOAuth2Client
from httpx2 import HTTPError
from joserfc.errors import JoseError

from switchboard.foundation.keyring import KeyRing, SecretError
from switchboard.foundation.settings import Settings

DISCOVERY = "/.well-known/openid-configuration"
PLACE = "single sign-on|attempt"
SECONDS = 10.0


class SingleSignOnFailed(Exception):
    """The provider refused, failed, or returned something invalid; the message is for the user."""


class _OpenIDClient(AsyncOAuth2Mixin, AsyncOpenIDMixin, BaseApp):
    client_cls = AsyncOAuth2Client


@dataclass(frozen=True, slots=True)
class Attempt:
    """State that must come back unchanged, kept encrypted in a cookie while the browser is at the provider."""

    state: str
    nonce: str
    code_verifier: str
    after: str

    def seal(self, keyring: KeyRing) -> str:
        """Encrypt for the cookie."""
        return keyring.encrypt(json.dumps(asdict(self)), PLACE)

    @classmethod
    def unseal(cls, sealed: str, keyring: KeyRing) -> "Attempt | None":
        """Decrypt from the cookie; None for a cookie of another server."""
        try:
            return cls(**json.loads(keyring.decrypt(sealed, PLACE)))
        except SecretError:
            return None


class SingleSignOn:
    """Client of the provider in the settings."""

    def __init__(self, settings: Settings) -> None:
        """`SWITCHBOARD_OIDC_ISSUER` must be set."""
        self._issuer = settings.oidc_issuer.rstrip("/")
        secret = settings.oidc_client_secret
        self._client: Any = _OpenIDClient(
            None,
            client_id=settings.oidc_client_id,
            client_secret=secret.get_secret_value() if secret else None,
            server_metadata_url=self._issuer + DISCOVERY,
            client_kwargs={
                "scope": "openid email",
                "code_challenge_method": "S256",
                "timeout": SECONDS,
                "trust_env": False,
            },
        )

    async def begin(self, redirect_uri: str, after: str) -> tuple[str, Attempt]:
        """Return the address for the browser and the state to keep. Raises `SingleSignOnFailed` if the provider does
        not answer or has another issuer.
        """
        try:
            metadata = await self._client.load_server_metadata()
            begun = await self._client.create_authorization_url(redirect_uri)
        except (HTTPError, AuthlibBaseError, RuntimeError, ValueError) as error:
            raise SingleSignOnFailed(
                "The identity provider does not respond as expected. Try again, or sign in with a password."
            ) from error
        if str(metadata.get("issuer", "")).rstrip("/") != self._issuer:
            raise SingleSignOnFailed("The identity provider reports another issuer than the one configured.")
        return begun["url"], Attempt(begun["state"], begun["nonce"], begun["code_verifier"], after)

    async def finish(self, redirect_uri: str, attempt: Attempt, *, code: str) -> str:
        """Exchange the code for the user's verified e-mail address. Raises `SingleSignOnFailed`."""
        try:
            token = await self._client.fetch_access_token(redirect_uri, code=code, code_verifier=attempt.code_verifier)
            claims = await self._client.parse_id_token(token, attempt.nonce)
        except (HTTPError, AuthlibBaseError, JoseError, RuntimeError, ValueError) as error:
            raise SingleSignOnFailed("The identity provider's response is not valid. Try again.") from error
        if not claims or not claims.get("email") or claims.get("email_verified") is not True:
            raise SingleSignOnFailed("The identity provider has not verified your e-mail address.")
        return str(claims["email"])
